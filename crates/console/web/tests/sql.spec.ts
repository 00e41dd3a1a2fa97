// The SQL page: tabs, the selection, charts of results, and plans.
import { expect, fits, logIn, test } from './page';

const sheet = (page: import('@playwright/test').Page) => page.getByRole('navigation', { name: 'Tabs' });

test('tabs keep their statements over a reload, and have results of their own', async ({ page }) => {
  await logIn(page, `#/sql?stmt=${encodeURIComponent('SELECT 1 AS one')}`);
  const editor = page.getByRole('textbox', { name: 'Statement' });
  await editor.press('Control+Enter');
  await expect(page.getByRole('gridcell', { name: '1' })).toBeVisible();
  await page.getByRole('button', { name: 'New tab' }).click();
  await expect(page).toHaveURL(/tab=2/);
  await expect(page.getByRole('grid')).toBeHidden();
  await editor.pressSequentially('SELECT 22 AS two');
  await editor.press('Control+Enter');
  await expect(page.getByRole('gridcell', { name: '22' })).toBeVisible();
  await sheet(page).getByRole('link', { name: 'SELECT 1 AS one' }).click();
  await expect(editor).toHaveText('SELECT 1 AS one');
  await expect(page.getByRole('gridcell', { name: '1', exact: true })).toBeVisible();
  await page.goBack();
  await expect(editor).toHaveText('SELECT 22 AS two');
  await page.reload();
  await expect(editor).toHaveText('SELECT 22 AS two');
  await expect(sheet(page).getByRole('link')).toHaveText(['SELECT 1 AS one', 'SELECT 22 AS two']);
  // A statement from elsewhere gets a tab of its own; one that a tab has opens that tab.
  await page.goto(`${process.env.CONSOLE}#/sql?stmt=SELECT+3`);
  await expect(sheet(page).getByRole('link')).toHaveText(['SELECT 1 AS one', 'SELECT 22 AS two', 'SELECT 3']);
  await page.goto(`${process.env.CONSOLE}#/sql?stmt=${encodeURIComponent('SELECT 1 AS one')}`);
  await expect(sheet(page).locator('[aria-current=page]')).toHaveText('SELECT 1 AS one');
  await page.getByRole('button', { name: 'Close SELECT 1 AS one' }).click();
  await expect(sheet(page).getByRole('link')).toHaveText(['SELECT 22 AS two', 'SELECT 3']);
  await expect(editor).toHaveText('SELECT 22 AS two');
});

test('a statement with a password stays in its tab and is not stored', async ({ page }) => {
  await logIn(page, '#/sql');
  const editor = page.getByRole('textbox', { name: 'Statement' });
  await editor.pressSequentially("SET PASSWORD = 'Hidden-Word-9'");
  await page.getByRole('button', { name: 'New tab' }).click();
  await expect(editor).toHaveText(/^SELECT …/);
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain('Hidden');
  expect(await page.content()).not.toContain('Hidden');
  await sheet(page).getByRole('link', { name: 'Tab 1' }).click();
  await expect(editor).toContainText('Hidden-Word-9');
  expect(page.url()).not.toContain('Hidden');
});

test('the selection runs', async ({ page }) => {
  await logIn(page, `#/sql?stmt=${encodeURIComponent('SELECT 5 AS five, nothing')}`);
  const editor = page.getByRole('textbox', { name: 'Statement' });
  await editor.press('Control+Home');
  for (let press = 0; press < 'SELECT 5 AS five'.length; press += 1) await editor.press('Shift+ArrowRight');
  await page.getByRole('button', { name: 'Run selection' }).click();
  await expect(page.getByRole('gridcell', { name: '5' })).toBeVisible();
  await editor.press('ArrowRight');
  await expect(page.getByRole('button', { name: 'Run', exact: true })).toBeVisible();
});

test('a result is shown as a chart, which the URL describes and which comes when it is asked for', async ({ page }) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  const stmt = "SELECT table_schema, COUNT(*) AS number, SUM(LENGTH(table_name)) AS letters FROM information_schema.tables GROUP BY table_schema ORDER BY 1";
  await logIn(page, `#/sql?stmt=${encodeURIComponent(stmt)}`);
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByRole('grid')).toBeVisible();
  expect(asked.some((url) => /(plot|chart)\.js/.test(url))).toBe(false);
  await page.getByRole('link', { name: 'Chart' }).click();
  const chart = page.getByRole('figure', { name: 'Chart of the result' });
  await expect(chart).toContainText('letters');
  await expect(page.getByLabel('Kind')).toHaveValue('bar');
  const inked = () => chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0));
  await expect.poll(inked).toBe(true);
  await fits(page, 'sql-bars');
  await page.getByRole('checkbox', { name: 'letters' }).uncheck();
  await expect(chart).not.toContainText('letters');
  await page.getByLabel('Kind').selectOption('line');
  await expect.poll(inked).toBe(true);
  expect(page.url()).toMatch(/view=chart.*kind=line|kind=line.*view=chart/);
  await page.reload();
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(chart).toContainText('number');
  await expect(chart).not.toContainText('letters');
  await page.getByRole('link', { name: 'Table', exact: true }).click();
  await expect(page.getByRole('grid')).toBeVisible();
});

test('EXPLAIN is a tree, and its text is there, too', async ({ page }) => {
  await logIn(page, `#/sql?stmt=${encodeURIComponent('EXPLAIN SELECT a.id FROM demo.orders a JOIN demo.clicks b ON a.id = b.id WHERE b.id > 3 ORDER BY 1')}`);
  await page.getByRole('button', { name: 'Run' }).click();
  const plan = page.getByRole('list', { name: 'Plan' });
  await expect(plan).toContainText('Hash join');
  const join = plan.locator('details', { hasText: 'Hash join' }).last();
  await expect(join).toContainText('Read demo.orders');
  await fits(page, 'sql-plan');
  await join.locator('summary').first().press('Enter');
  await expect(join.getByText('Read demo.orders').first()).toBeHidden();
  await page.getByRole('link', { name: 'Text' }).click();
  expect(await page.locator('pre').innerText()).toMatch(/^Sort by id.*\n  Hash join/);
});
