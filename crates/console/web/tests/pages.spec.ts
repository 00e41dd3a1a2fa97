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

test('the overview lists the nodes of a cluster and marks one that is silent', async ({ page }) => {
  await logIn(page, '#/overview');
  const rows = page.getByRole('region', { name: 'List of nodes' }).locator('tbody tr');
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).toContainText(/WRITER.*db0\.example:9030.*off.*yes.*1 s ago.*1 s.*no/);
  await expect(rows.nth(2)).toContainText(/READER.*db2\.example:9032.*db2\.example:8070.*no.*42 s ago.*unknown.*computes/);
});

test('an address without a page says so', async ({ page }) => {
  for (const name of ['nothing', 'constructor']) {
    await logIn(page, `#/${name}`);
    await expect(page.getByRole('heading', { name: 'Not found' })).toBeVisible();
    await page.getByRole('button', { name: /^Log out/ }).click();
  }
});
