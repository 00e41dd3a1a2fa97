// Every page at every width: it fits, axe finds nothing, and it has its data. SHOTS names a directory for screenshots.
import AxeBuilder from '@axe-core/playwright';
import { expect, logIn, test } from './page';

const PAGES: [string, string, string][] = [
  ['overview', '#/overview', 'lags 40 s'],
  ['queues', '#/queues', 'demo.orders'],
  ['queue', '#/queues/demo/clicks', 'publish'],
  ['loads', '#/loads?table=clicks', 'group_commit_'],
  ['rejected', '#/rejected?db=demo&table=clicks', 'Replay'],
  ['sql', '#/sql?stmt=SELECT+*+FROM+information_schema.columns', 'Run'],
  ['log', '#/log', 'Segments'],
  ['activity', '#/activity', 'Statement'],
];

for (const [name, hash, words] of PAGES) {
  test(`page ${name} fits three widths and is accessible`, async ({ page }) => {
    await logIn(page, hash);
    await expect(page.getByText(words).first()).toBeVisible();
    if (name === 'sql') {
      await expect(page.getByRole('textbox', { name: 'Statement' })).toBeVisible();
      await page.getByRole('button', { name: 'Run' }).click();
      await expect(page.getByRole('grid')).toBeVisible();
    }
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const width of [375, 768, 1440]) {
        await page.setViewportSize({ width, height: 900 });
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}-${width}-${scheme}.png` });
      }
      const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join('\n').slice(0, 600)}`)).toEqual([]);
    }
  });
}
