// Every page at every width: it fits, axe finds nothing, and it has its data.
import { expect, fits, logIn, test } from './page';

const PAGES: [string, string, string][] = [
  ['overview', '#/overview', 'lags 40 s'],
  ['queues', '#/queues', 'demo.orders'],
  ['queue', '#/queues/demo/clicks', 'publish'],
  ['loads', '#/loads?table=orders', 'group_commit_'],
  ['rejected', '#/rejected?db=demo&table=clicks', 'Replay'],
  ['sql', '#/sql?stmt=SELECT+*+FROM+information_schema.columns', 'Run'],
  ['log', '#/log', 'Segments'],
  ['activity', '#/activity', 'Statement'],
  ['users', "#/users?user='reader'@'%25'&priv=LOAD&on=demo.clicks", 'No grant gives it'],
  ['settings', '#/settings?name=password', 'password_history'],
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
    await fits(page, name);
  });
}

test('an address without a page says so', async ({ page }) => {
  for (const name of ['nothing', 'constructor']) {
    await logIn(page, `#/${name}`);
    await expect(page.getByRole('heading', { name: 'Not found' })).toBeVisible();
    await page.getByRole('button', { name: /^Log out/ }).click();
  }
});
