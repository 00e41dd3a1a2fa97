// The fixture of all tests: a page that fails its test on a console error, a page error, a dialog, or a violation of the policy.
import AxeBuilder from '@axe-core/playwright';
import { expect, test as base, type Page } from '@playwright/test';
import { PASSWORD } from './setup';

export const test = base.extend<{ allow: RegExp[] }>({
  allow: [[], { option: true }],
  page: async ({ page, allow }, use) => {
    const faults: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type()) && !allow.some((pattern) => pattern.test(message.text()))) faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`)));
    await use(page);
    expect(faults).toEqual([]);
  },
});

export async function logIn(page: Page, hash = '', user = 'root'): Promise<void> {
  await page.goto(`${process.env.CONSOLE}${hash}`);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await expect(page.getByRole('navigation', { name: 'Pages' })).toBeVisible();
}

/** Runs a statement in the server, past the door. */
export async function ask(stmt: string, user = 'root'): Promise<unknown[][]> {
  const answer = await fetch(`${process.env.SERVER}/query/internal`, {
    method: 'POST', headers: { Authorization: `Basic ${btoa(`${user}:${PASSWORD}`)}` }, body: JSON.stringify({ stmt }),
  });
  const body = (await answer.json()) as { code: number; data: { data?: unknown[][] }; error?: { number: number } };
  if (body.code !== 0) throw new Error(`${stmt}: ${body.error?.number} ${JSON.stringify(body.data)}`);
  return body.data.data ?? [];
}

/** At three widths, light and dark: the page fits, and axe finds nothing. SHOTS names a directory for screenshots. */
export async function fits(page: Page, name: string): Promise<void> {
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const width of [375, 768, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}-${width}-${scheme}.png`, fullPage: true });
    }
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join('\n').slice(0, 600)}`)).toEqual([]);
  }
}

export { expect };
