// Behaviour of the pages: hostile text, the SQL page, the keyboard, panels whose statement fails.
import AxeBuilder from '@axe-core/playwright';
import { readFile } from 'node:fs/promises';
import { HOSTILE } from './door';
import { expect, logIn, test } from './page';
import { PASSWORD } from './setup';

test('hostile text is shown as text', async ({ page }) => {
  await logIn(page, '#/overview');
  await expect(page.getByText(`lags 40 s ${HOSTILE}`)).toBeVisible();
  await page.goto(`${process.env.CONSOLE}#/rejected`);
  await expect(page.getByText(HOSTILE).first()).toBeVisible();
  await page.goto(`${process.env.CONSOLE}#/queues/demo/${encodeURIComponent(HOSTILE)}`);
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();
  await expect(page.getByText('There is no such table')).toBeVisible();
  await page.goto(`${process.env.CONSOLE}#/sql?stmt=${encodeURIComponent(`SELECT '${HOSTILE}' AS \`${HOSTILE}\``)}`);
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByRole('gridcell', { name: HOSTILE })).toBeVisible();
  expect(await page.locator('img').count()).toBe(0);
});

test('the statement at the cursor runs; an error and the history are shown', async ({ page }) => {
  await logIn(page, `#/sql?stmt=${encodeURIComponent("SELECT 'a;b' AS first; SELECT nothing FROM nowhere")}`);
  const editor = page.getByRole('textbox', { name: 'Statement' });
  await editor.press('Control+Home');
  await editor.press('Control+Enter');
  await expect(page.getByRole('gridcell', { name: 'a;b' })).toBeVisible();
  await editor.press('Control+End');
  await editor.press('Control+Enter');
  await expect(page.getByText(/^Error \d+:/)).toBeVisible();
  await expect(page.getByLabel('History')).toContainText('2 statements');
  await page.getByLabel('History').selectOption("SELECT 'a;b' AS first");
  await expect(editor).toHaveText("SELECT 'a;b' AS first");
});

test('a running statement is cancelled in the server', async ({ page }) => {
  const long = 'SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c, information_schema.columns d WHERE a.column_name < b.column_name AND c.column_name > b.column_name AND d.column_name > a.column_name';
  await logIn(page, `#/sql?stmt=${encodeURIComponent(long)}`);
  await page.getByRole('button', { name: 'Run' }).click();
  const running = async () => {
    const answer = await page.request.post(new URL('../api/query/internal', process.env.CONSOLE).href, {
      headers: { authorization: `Basic ${btoa(`root:${PASSWORD}`)}` },
      data: { stmt: "SELECT COUNT(*) FROM information_schema.processlist WHERE INFO LIKE 'SELECT COUNT(*) FROM information_schema.columns a,%'" },
    });
    return ((await answer.json()) as { data: { data: number[][] } }).data.data[0]![0];
  };
  await expect.poll(running).toBe(1);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByText('Cancelled.')).toBeVisible();
  await expect.poll(running, { timeout: 8000 }).toBe(0);
});

test('the offered statement loads rejected rows again', async ({ page }) => {
  await logIn(page, '#/rejected?db=demo&table=clicks');
  await page.getByRole('link', { name: 'Open on the SQL page' }).click();
  const editor = page.getByRole('textbox', { name: 'Statement' });
  await expect(editor).toContainText('REPLAYED_BY_TXN_ID IS NULL');
  await page.goto(`${page.url().split('#')[0]}#/sql?stmt=${encodeURIComponent(stmt(page.url()).replace(/SPLIT_PART\(RAW_ROW, ',', (1|3)\)/g, (_, at) => (at === '1' ? '7' : 'NOW()')))}`);
  await expect(editor).toContainText('7 AS');
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByText(/[1-9]\d* rows affected/)).toBeVisible();
  await page.getByRole('link', { name: 'Rejected rows' }).click();
  await expect(page.getByText(/replayed by \d+/).first()).toBeVisible();
});

const stmt = (url: string) => new URLSearchParams(new URL(url).hash.split('?')[1]).get('stmt')!;

test('a transaction has a page with the stages of its group', async ({ page }) => {
  await logIn(page, '#/loads?table=clicks&status=VISIBLE&label=group_commit_');
  await page.getByRole('link', { name: /^\d+$/ }).first().click();
  await expect(page.getByRole('heading', { name: /^Transaction \d+$/ })).toBeVisible();
  await expect(page.getByText('sync the log')).toBeVisible();
  expect((await new AxeBuilder({ page }).setLegacyMode(true).analyze()).violations.map(({ id }) => id)).toEqual([]);
});

test('SYNC closes the groups, and KILL ends a statement', async ({ page }) => {
  await logIn(page, '#/queues');
  await page.getByRole('button', { name: 'SYNC' }).click();
  await expect(page.getByText(/Done in \d+ ms/)).toBeVisible();
  const long = page.request.post(new URL('../api/query/internal', process.env.CONSOLE).href, {
    headers: { authorization: `Basic ${btoa(`root:${PASSWORD}`)}` },
    data: { stmt: 'SELECT COUNT(*) FROM information_schema.columns x, information_schema.columns y, information_schema.columns z, information_schema.columns v WHERE x.column_name < y.column_name AND z.column_name > y.column_name AND v.column_name > x.column_name' },
  });
  await page.getByRole('link', { name: 'Activity' }).click();
  await page.getByRole('row', { name: 'information_schema.columns x' }).getByRole('button').click();
  expect(await (await long).json()).toMatchObject({ code: 1 });
});

test('integers are exact, and a statement with a password is in neither the history nor the URL', async ({ page }) => {
  await logIn(page, '#/sql');
  const editor = page.getByRole('textbox', { name: 'Statement' });
  await editor.press('Control+End');
  await page.keyboard.type('SELECT 9007199254740993 AS exact');
  await editor.press('Control+Enter');
  await expect(page.getByRole('gridcell', { name: '9007199254740993' })).toBeVisible();
  await editor.press('Control+a');
  await page.keyboard.type("CREATE USER someone IDENTIFIED BY 'Hidden-Word-9'");
  await editor.press('Control+Enter');
  await expect(page.getByText('rows affected')).toBeVisible();
  expect(page.url()).not.toContain('Hidden');
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain('Hidden');
});

test('only visible rows and columns are in the document, and a result is saved', async ({ page }) => {
  await logIn(page, '#/sql?stmt=SELECT+*+FROM+information_schema.columns');
  await page.getByRole('button', { name: 'Run' }).click();
  const grid = page.getByRole('grid');
  await expect(grid).toBeVisible();
  expect(Number(await grid.getAttribute('aria-rowcount'))).toBeGreaterThan(300);
  expect(await grid.getByRole('row').count()).toBeLessThan(50);
  await grid.focus();
  for (let press = 0; press < 5; press += 1) await grid.press('PageDown');
  await grid.press('End');
  await expect(grid.locator('[aria-selected=true]')).toBeVisible();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save as CSV' }).click();
  expect(await readFile(await (await download).path(), 'utf8')).toMatch(/^TABLE_CATALOG,TABLE_SCHEMA/i);
});

test('every way through the pages is there by keyboard', async ({ page }) => {
  await page.goto(process.env.CONSOLE!);
  await page.keyboard.press('Tab');
  await page.keyboard.type('root');
  await page.keyboard.press('Tab');
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('navigation', { name: 'Pages' })).toBeVisible();
  const reach = async (name: string) => {
    for (let press = 0; press < 40; press += 1) {
      if (await page.evaluate((wanted) => document.activeElement?.textContent?.trim() === wanted, name)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not reach ${name}.`);
  };
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await reach('Queues');
  expect(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle)).toBe('solid');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('link', { name: 'demo.clicks' })).toBeVisible();
  await reach('demo.clicks');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'demo.clicks' })).toBeVisible();
  await reach('show SQL');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('textbox', { name: 'Statement' })).toBeFocused();
  await page.keyboard.press('Control+Enter');
  await expect(page.getByRole('grid')).toBeVisible();
});

test('an error of one panel is said in that panel, and its values are marked as old', async ({ page }) => {
  await logIn(page, '#/overview');
  await expect(page.getByText('lags 40 s')).toBeVisible();
  await page.route('**/api/query/**', (route) =>
    route.request().postData()!.includes('problems') ? route.fulfill({ json: { code: 1, msg: 'Error', data: 'No such luck.' } }) : route.continue());
  const panel = page.getByRole('region', { name: 'Problems' });
  await expect(panel).toContainText('No such luck.');
  await expect(panel).toContainText('old values');
  await expect(page.getByRole('region', { name: 'Activity' })).not.toContainText('No such luck.');
});
