// Users, grants and settings: the answers agree with what the server does, and users see only what they may.
import { holder, may, type Privilege } from '../src/lib/grants';
import { HOSTILE } from './door';
import { ask, expect, fits, logIn, test } from './page';
import { PASSWORD } from './setup';

const SETUP = [
  'CREATE DATABASE office', 'CREATE TABLE office.files (id INT, note STRING)', 'CREATE TABLE office.other (id INT, note STRING)',
  'CREATE VIEW office.seen AS SELECT id FROM office.files',
  `CREATE ROLE writers COMMENT '${HOSTILE}'`, 'GRANT LOAD_PRIV ON office.* TO ROLE writers',
  `CREATE USER maria IDENTIFIED BY '${PASSWORD}' DEFAULT ROLE 'writers' COMMENT '${HOSTILE}'`, 'GRANT SELECT_PRIV ON office.files TO maria',
  `CREATE USER otto IDENTIFIED BY '${PASSWORD}'`, 'GRANT SELECT_PRIV(id) ON office.files TO otto', "GRANT USAGE_PRIV ON RESOURCE 's3' TO otto",
  `CREATE USER boss IDENTIFIED BY '${PASSWORD}'`, 'GRANT ADMIN_PRIV ON *.* TO boss',
  `CREATE USER maker IDENTIFIED BY '${PASSWORD}'`, 'GRANT CREATE_PRIV, ALTER_PRIV ON office.* TO maker', 'GRANT DROP_PRIV ON office.other TO maker',
  `CREATE USER reads_all IDENTIFIED BY '${PASSWORD}'`, 'GRANT SELECT_PRIV ON *.* TO reads_all',
];
test.beforeAll(async () => {
  // The runner begins again after a failed test.
  if ((await ask("SHOW DATABASES LIKE 'office'")).length) return;
  for (const stmt of SETUP) await ask(stmt);
});

/** SHOW as the console reads it. */
async function shown(stmt: string) {
  const answer = await fetch(`${process.env.SERVER}/query/internal`, { method: 'POST', headers: { Authorization: `Basic ${btoa(`root:${PASSWORD}`)}` }, body: JSON.stringify({ stmt }) });
  const { data } = (await answer.json()) as { data: { meta: { name: string }[]; data: (string | null)[][] } };
  return data.data.map((row) => holder(Object.fromEntries(data.meta.map(({ name }, at) => [name.toUpperCase(), row[at] ?? null]))));
}

test('what the page says of grants is what the server does', async () => {
  const users = await shown('SHOW ALL GRANTS');
  const roles = await shown('SHOW ROLES');
  const DENIED = [1044, 1142, 1143, 1227, 1045];
  // Statements that need one privilege on one object, and change nothing where they are allowed.
  const statements: [Privilege, string, string][] = [
    ['SELECT', 'office.files', 'SELECT id, note FROM office.files LIMIT 0'], ['SELECT', 'office.other', 'SELECT * FROM office.other LIMIT 0'],
    ['SELECT', 'information_schema.tables', 'SELECT 1 FROM information_schema.tables LIMIT 0'],
    ['LOAD', 'office.files', 'INSERT INTO office.files SELECT 1, note FROM office.files WHERE FALSE'], ['LOAD', 'office.other', 'TRUNCATE TABLE office.other'],
    ['CREATE', 'office', 'CREATE TABLE IF NOT EXISTS office.other (id INT)'], ['ALTER', 'office.other', 'ALTER TABLE office.other SET ("max_load_rows_per_second" = "-1")'],
    ['DROP', 'office.nothing', 'DROP TABLE IF EXISTS office.nothing'], ['SHOW_VIEW', 'office.seen', 'SHOW CREATE VIEW office.seen'],
    ['ADMIN', '*', 'ADMIN SHOW FRONTEND CONFIG'],
  ];
  for (const name of ['maria', 'otto', 'boss', 'maker', 'reads_all', 'reader']) {
    const user = users.find((entry) => entry.name === `'${name}'@'%'`)!;
    for (const [privilege, object, stmt] of statements) {
      const said = may(user, privilege, object, roles).allowed;
      // INSERT … SELECT needs SELECT, too.
      const both = stmt.startsWith('INSERT') ? [said, may(user, 'SELECT', object, roles).allowed].every((one) => one === 'yes') : said === 'yes';
      const failure = await ask(stmt, name).then(() => '', (error: Error) => error.message.slice(stmt.length + 2));
      // A column that may not be read is unknown; a view that may not be seen as well.
      const done = !DENIED.includes(Number(failure.split(' ')[0])) && !/^(1054|1347|1146) /.test(failure);
      expect(`${name} ${stmt}: ${done}${both === done ? '' : ` ${failure}`}`).toBe(`${name} ${stmt}: ${both}`);
    }
  }
});

test('the way to a privilege is named: role, column, or the missing grant', async () => {
  const [users, roles] = [await shown('SHOW ALL GRANTS'), await shown('SHOW ROLES')];
  const ask_ = (name: string, privilege: Privilege, object: string, known: typeof roles | null = roles) => may(users.find((user) => user.name === `'${name}'@'%'`)!, privilege, object, known);
  expect(ask_('maria', 'LOAD', 'office.files')).toEqual({ allowed: 'yes', because: ['LOAD_PRIV ON office.*, through role writers'], missing: '' });
  expect(ask_('maria', 'SELECT', 'office.files').because).toEqual(['SELECT_PRIV ON office.files, granted to the user']);
  expect(ask_('maria', 'LOAD', 'office.files', null).because).toEqual(['LOAD_PRIV ON office.*, granted to the user or to one of its roles (writers)']);
  expect(ask_('maria', 'SELECT', 'office.*')).toEqual({ allowed: 'no', because: [], missing: "GRANT SELECT_PRIV ON office.* TO 'maria'@'%'" });
  expect(ask_('otto', 'SELECT', 'office.files')).toMatchObject({ allowed: 'partly', because: ['SELECT_PRIV(id) ON office.files, granted to the user'] });
  expect(ask_('otto', 'USAGE', 's3').allowed).toBe('yes');
  expect(ask_('otto', 'USAGE', 'http').missing).toBe("GRANT USAGE_PRIV ON RESOURCE 'http' TO 'otto'@'%'");
  expect(ask_('reads_all', 'SELECT', '__internal_schema.audit_log').allowed).toBe('no');
  expect(ask_('boss', 'LOAD', '__internal_schema.audit_log').allowed).toBe('no');
  expect(ask_('boss', 'NODE', '*')).toMatchObject({ allowed: 'no', missing: '' });
  const odd = { ...users[0]!, name: "'o\\'; x'@'%'", grants: [] };
  expect(may(odd, 'LOAD', 'a-b.c`d', roles).missing).toBe("GRANT LOAD_PRIV ON `a-b`.`c``d` TO 'o\\\\''; x'@'%'");
  expect(ask_('root', 'NODE', '*').because).toEqual(['NODE_PRIV ON *.*, through role operator']);
});

test('the missing grant is offered, and gives the privilege', async ({ page }) => {
  await logIn(page, "#/users?user='otto'@'%25'&priv=SELECT&on=office.other");
  const question = page.getByRole('region', { name: 'May a user do this?' });
  await expect(question).toContainText("No. 'otto'@'%', SELECT_PRIV on office.other");
  await fits(page, 'users-many');
  expect(await page.locator('img').count()).toBe(0);
  await question.getByRole('link', { name: 'open on the SQL page' }).click();
  await page.getByRole('button', { name: 'Run' }).click();
  await expect(page.getByText('0 rows affected')).toBeVisible();
  await page.goBack();
  await expect(question).toContainText('Yes.');
  await expect(question).toContainText('SELECT_PRIV ON office.other, granted to the user');
  await question.getByLabel('Privilege').selectOption('LOAD');
  await expect(question).toContainText("GRANT LOAD_PRIV ON office.other TO 'otto'@'%'");
  expect(page.url()).toContain('priv=LOAD');
  await ask('REVOKE SELECT_PRIV ON office.other FROM otto');
});

test('a user without GRANT_PRIV sees its own grants only', async ({ page }) => {
  await logIn(page, '#/users?priv=LOAD&on=office.files', 'maria');
  await expect(page.getByRole('region', { name: 'You', exact: true })).toContainText('LOAD_PRIV ON office.*');
  await expect(page.getByRole('region', { name: 'May a user do this?' })).toContainText('to one of its roles (writers)');
  await expect(page.getByRole('region', { name: 'Roles' })).toBeHidden();
  await expect(page.getByRole('main')).not.toContainText('otto');
});

test('variables are filtered, and events and settings are shown if the server has them', async ({ page }) => {
  await page.route('**/api/query/**', (route) => {
    const { stmt } = route.request().postDataJSON() as { stmt: string };
    const table = (meta: string[], data: unknown[][]) => route.fulfill({ json: { code: 0, msg: 'success', data: { meta: meta.map((name) => ({ name, type: 'STRING' })), data, status: {}, time: 1 } } });
    if (stmt.includes('server_events')) return table(['TIME', 'KIND', 'USER', 'TEXT'], [['2026-01-01 00:00:00', 'START', null, 'The server started.'], ['2026-01-01 00:01:00', 'DDL', 'root', `CREATE TABLE ${HOSTILE}`]]);
    if (stmt.includes('server_settings')) return table(['NAME', 'VALUE', 'DEFAULT_VALUE', 'ORIGIN'], [['bind', '0.0.0.0', '127.0.0.1', 'file'], ['umask', '077', '077', 'default']]);
    return route.continue();
  });
  await logIn(page, '#/settings');
  const events = page.getByRole('region', { name: 'Events', exact: true });
  await expect(events).toContainText(`CREATE TABLE ${HOSTILE}`);
  const settings = page.getByRole('region', { name: 'Settings of the server', exact: true });
  await expect(settings.getByRole('row')).toHaveCount(3);
  await page.getByRole('combobox', { name: 'Events' }).selectOption('START');
  await expect(events).not.toContainText('CREATE TABLE');
  await page.getByRole('combobox', { name: 'Show' }).selectOption('1');
  await expect(settings).toContainText('bind');
  await expect(settings).not.toContainText('umask');
  await page.getByRole('combobox', { name: 'Show' }).selectOption('');
  await page.getByLabel('Name contains').fill('GROUP_COMMIT');
  const variables = page.getByRole('region', { name: 'Global variables', exact: true });
  await expect(variables).toContainText('group_commit_require');
  await expect(variables).not.toContainText('query_timeout');
  expect(page.url()).toContain('name=GROUP_COMMIT');
  await page.getByLabel('Name contains').fill('mask');
  await page.getByRole('combobox', { name: 'Events' }).selectOption('');
  await fits(page, 'settings-events');
});

test('tables that the server does not have are left out', async ({ page }) => {
  await page.route('**/api/query/**', (route) => {
    const { stmt } = route.request().postDataJSON() as { stmt: string };
    return /server_(events|settings)/.test(stmt) ? route.fulfill({ json: { code: 1, msg: 'Error', data: 'does not exist', error: { number: 1146 } } }) : route.continue();
  });
  await logIn(page, '#/settings');
  await expect(page.getByRole('region', { name: 'Global variables', exact: true })).toContainText('query_timeout');
  await expect(page.getByRole('region', { name: 'Events', exact: true })).toBeHidden();
  await expect(page.getByRole('region', { name: 'Settings of the server', exact: true })).toBeHidden();
});

test('the statement of the day thins its samples, and the server takes it', async ({ page }) => {
  await logIn(page, '#/overview?span=24h');
  const shown_ = page.getByRole('link', { name: 'Show SQL of Activity' });
  const stmt = new URLSearchParams((await shown_.getAttribute('href'))!.split('?')[1]).get('stmt')!;
  expect(stmt).toContain('GROUP BY');
  const count = async () => ((await ask('SELECT COUNT(*) FROM information_schema.server_samples WHERE EVERY_SECONDS = 10')) as [[number]])[0][0];
  // The server may be younger than its first sample of ten seconds.
  await expect.poll(count, { timeout: 30_000 }).toBeGreaterThan(0);
  const rows = await ask(stmt);
  const all = await count();
  expect(rows.length).toBeLessThanOrEqual(Math.ceil(all / 12) + 1);
  expect(rows.length).toBeGreaterThan(0);
  await expect(page.getByRole('region', { name: 'Activity' })).toContainText('written to the log');
});
