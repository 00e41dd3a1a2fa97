// The Import page: guesses, the preview's verdicts, chunks, resumption, and that each row of a file is loaded once.
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { guessFormat, guessHeader, guessSeparator, sample, typeOf } from '../src/lib/import/guess';
import { cut, fields, type Shape } from '../src/lib/import/rows';
import { HOSTILE } from './door';
import { ask, expect, fits, logIn, test } from './page';

// A test lets an answer get lost.
test.use({ allow: [/ERR_FAILED/] });

let directory = '';
test.beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tributary-import-'));
});
test.afterAll(() => rm(directory, { recursive: true, force: true }));

async function choose(page: Page, name: string, content: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content);
  await page.getByLabel(/Drop CSV/).setInputFiles(path);
  return path;
}

const job = (page: Page, name: string) => page.getByRole('article', { name });
const loads = (page: Page, answer: (count: number) => 'pass' | 'lose' | 'hold') => {
  let count = 0;
  return page.route('**/_stream_load', async (route) => {
    if (route.request().headers().two_phase_commit) return route.continue();
    const what = answer(count++);
    if (what === 'hold') return;
    const response = await route.fetch();
    if (what === 'lose') return route.abort();
    return route.fulfill({ response });
  });
};
// A file of more than four chunks of 1 MiB, with line ends and quotes inside of fields.
const LINES = 24_000;
const large = () => Array.from({ length: LINES }, (_, at) => `${at},"row ${at}\n""quoted"", ${'x'.repeat(170)}"\r\n`).join('');

test('a file becomes a new table, and the rows that it would reject are marked before and kept after', async ({ page }) => {
  await logIn(page, '#/import?db=demo');
  await choose(page, 'people.csv', `id;name;born;weight\n1;"Ann; ""A""\nSmith";1990-05-01;61.25\n2;${HOSTILE};1991-01-31;70.5\n3;Bo;;80\n`);
  await expect(page.getByLabel('Separator')).toHaveValue(';');
  await expect(page.getByLabel('First row')).toHaveValue('yes');
  await page.getByLabel('Into').selectOption('new');
  const ddl = page.getByLabel('Statement');
  await expect(ddl).toHaveValue('CREATE TABLE `demo`.`people` (\n  `id` BIGINT,\n  `name` STRING,\n  `born` DATE,\n  `weight` DECIMAL(18, 2)\n)');
  await ddl.fill((await ddl.inputValue()).replace('`born` DATE', '`born` DATE NOT NULL'));
  await page.getByRole('button', { name: 'Create table' }).click();
  const preview = page.getByRole('region', { name: 'Preview' });
  await expect(preview).toContainText('It would reject 1');
  await expect(preview.getByRole('row', { name: /rejected/ })).toContainText('Bo');
  await expect(preview.getByRole('row', { name: /rejected/ })).toContainText('born');
  expect(page.url()).toContain('table=people');
  await fits(page, 'import');
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'people.csv')).toContainText('2 rows loaded');
  expect(await ask('SELECT id, name, born, weight FROM demo.people ORDER BY id')).toEqual([
    [1, 'Ann; "A"\nSmith', '1990-05-01', 61.25], [2, HOSTILE, '1991-01-31', 70.5],
  ]);
  await page.getByRole('link', { name: '1 row rejected' }).click();
  await expect(page.getByText('3;Bo;;80')).toBeVisible();
  expect(await page.locator('img').count()).toBe(0);
});

test('an import that a reload interrupts goes on, and no row is loaded twice', async ({ page }) => {
  await ask('CREATE TABLE demo.resumed (id INT NOT NULL, note STRING)');
  await logIn(page, '#/import?db=demo&table=resumed&chunk=1');
  // The second load arrives, but its answer does not; the third does not leave the browser.
  await loads(page, (count) => (count < 1 ? 'pass' : count < 2 ? 'lose' : 'hold'));
  await choose(page, 'large.csv', large());
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'large.csv')).toContainText('Trying again');
  await page.unroute('**/_stream_load');
  await page.reload();
  await expect(page.getByRole('region', { name: 'Interrupted imports' })).toContainText('large.csv into demo.resumed');
  await fits(page, 'import-interrupted');
  await page.getByLabel(/Drop CSV/).setInputFiles(join(directory, 'large.csv'));
  await page.getByRole('button', { name: /Go on at 1.0 MiB/ }).click();
  await expect(job(page, 'large.csv')).toContainText('done');
  await expect(job(page, 'large.csv')).toContainText(`${LINES.toLocaleString('en')} rows loaded`);
  expect(await ask('SELECT COUNT(*), COUNT(DISTINCT id), MIN(LENGTH(note)) FROM demo.resumed')).toEqual([[LINES, LINES, 186]]);
  await fits(page, 'import-done');
});

test('another browser, which knows nothing of an import, loads no row of it again', async ({ page }) => {
  await ask('CREATE TABLE demo.twice (id INT NOT NULL, note STRING)');
  await logIn(page, '#/import?db=demo&table=twice&chunk=1');
  await choose(page, 'twice.csv', large());
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'twice.csv')).toContainText('done');
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await page.getByLabel(/Drop CSV/).setInputFiles(join(directory, 'twice.csv'));
  await expect(page.getByText('are not sent twice')).toBeVisible();
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'twice.csv')).toContainText('done');
  await expect(job(page, 'twice.csv')).toContainText(`${LINES.toLocaleString('en')} rows loaded`);
  expect(await ask('SELECT COUNT(*) FROM demo.twice')).toEqual([[LINES]]);
  // With other settings the chunks would have other labels: the page asks first.
  await page.getByLabel(/Drop CSV/).setInputFiles(join(directory, 'twice.csv'));
  await page.getByLabel('Size of a load').selectOption('8');
  await expect(page.getByText('loads them a second time')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Start import' })).toBeHidden();
});

test('an import pauses, is cancelled, and goes on', async ({ page }) => {
  await ask('CREATE TABLE demo.halves (id INT NOT NULL, note STRING)');
  await logIn(page, '#/import?db=demo&table=halves&chunk=1');
  let held = false;
  await loads(page, (count) => (count === 1 && !held ? ((held = true), 'hold') : 'pass'));
  await choose(page, 'halves.csv', large());
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect.poll(() => held).toBe(true);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(job(page, 'halves.csv')).toContainText('cancelled');
  const [[before]] = (await ask('SELECT COUNT(*) FROM demo.halves')) as [[number]];
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(LINES);
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(job(page, 'halves.csv')).toContainText(/paused|done/);
  if (await page.getByRole('button', { name: 'Go on' }).isVisible()) await page.getByRole('button', { name: 'Go on' }).click();
  await expect(job(page, 'halves.csv')).toContainText('done');
  expect(await ask('SELECT COUNT(*), COUNT(DISTINCT id) FROM demo.halves')).toEqual([[LINES, LINES]]);
});

test('JSON is loaded as lines and as an array, with keys mapped to columns', async ({ page }) => {
  await ask('CREATE TABLE demo.things (id BIGINT NOT NULL, label STRING, extra JSON)');
  await logIn(page, '#/import?db=demo&table=things');
  await choose(page, 'things.jsonl', '{"id":1,"name":"a","extra":{"k":[1]}}\n{"id":9007199254740993,"name":"b"}\n{"id":"x","name":"c"}\n');
  await page.getByLabel('Column of name').selectOption('label');
  await expect(page.getByRole('region', { name: 'Preview' })).toContainText('It would reject 1');
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'things.jsonl')).toContainText('2 rows loaded, 1 row rejected');
  await choose(page, 'array.json', '[\n  {"id": 11, "label": "p,]q"},\n  {"id": 12, "label": "r"}\n]\n');
  await expect(page.getByLabel('Format')).toHaveValue('array');
  await expect(page.getByRole('region', { name: 'Preview' })).toContainText('took 2 of the first 2');
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'array.json')).toContainText('2 rows loaded');
  expect(await ask('SELECT id, label FROM demo.things ORDER BY id')).toEqual([[1, 'a'], [11, 'p,]q'], [12, 'r'], ['9007199254740993', 'b']].map(([id, label]) => [expect.anything(), label]));
});

test('files are dropped onto the page, and all of them are imported', async ({ page }) => {
  await ask('CREATE TABLE demo.dropped (id INT NOT NULL, note STRING)');
  await logIn(page, '#/import?db=demo&table=dropped');
  const files = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    for (const at of [1, 2]) transfer.items.add(new File([`id\tnote\n${at}\tfrom ${at}\n`], `part${at}.tsv`, { lastModified: at }));
    transfer.items.add(new File(['id,other\n3,from 3\n'], 'part3.csv'));
    return transfer;
  });
  await page.getByText('Drop CSV').dispatchEvent('drop', { dataTransfer: files });
  await expect(page.getByRole('region', { name: 'Preview' })).toContainText('took 1 of the first 1');
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'part2.tsv')).toContainText('1 row loaded');
  await expect(page.getByRole('alert')).toContainText('Not imported: part3.csv');
  expect(await ask('SELECT id, note FROM demo.dropped ORDER BY id')).toEqual([[1, 'from 1'], [2, 'from 2']]);
});

test('trials of the preview leave nothing behind, and hostile names stay text', async ({ page }) => {
  await logIn(page, '#/import?db=demo&new=1');
  const name = `${HOSTILE}.csv`;
  await page.getByLabel(/Drop CSV/).setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(`"${HOSTILE}",\`b\`\n1,${HOSTILE}\n`) });
  await page.getByLabel('First row').first().selectOption('yes');
  await page.getByRole('button', { name: 'Create table' }).click();
  await expect(page.getByRole('region', { name: 'Preview' })).toContainText('took 1 of the first 1');
  for (const empty of ['text', 'null', 'text', 'null', 'text']) {
    const tried = page.waitForRequest(/_stream_load$/);
    await page.getByLabel('Empty field').selectOption(empty);
    await tried;
  }
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(page.getByRole('article')).toContainText('1 row loaded');
  await expect(page.getByRole('article')).toContainText(name);
  await expect.poll(() => ask('SELECT COUNT(*) FROM information_schema.prepared_loads')).toEqual([[0]]);
  expect(await page.locator('img').count()).toBe(0);
});

test('a Parquet file is one load, and is not loaded twice', async ({ page }) => {
  await ask('CREATE TABLE demo.origin (id INT NOT NULL, note STRING)');
  await ask('CREATE TABLE demo.parquet (id INT NOT NULL, note STRING)');
  await ask("INSERT INTO demo.origin VALUES (1, 'a'), (2, 'b'), (3, 'c')");
  // A delete writes the rows to a data file first.
  await ask('DELETE FROM demo.origin WHERE id = 9');
  const found = (await readdir(process.env.STORAGE!, { recursive: true })).filter((file) => file.includes('origin') && file.endsWith('.parquet'));
  expect(found).toHaveLength(1);
  const path = join(process.env.STORAGE!, found[0]!);
  await logIn(page, '#/import?db=demo&table=parquet');
  for (let time = 0; time < 2; time += 1) {
    await page.getByLabel(/Drop CSV/).setInputFiles(path);
    await expect(page.getByLabel('Format')).toHaveValue('parquet');
    await page.getByRole('button', { name: 'Start import' }).click();
    await expect(page.getByRole('article')).toContainText('3 rows loaded');
    await page.evaluate(() => localStorage.clear());
    await page.reload();
  }
  expect(await ask('SELECT id, note FROM demo.parquet ORDER BY id')).toEqual([[1, 'a'], [2, 'b'], [3, 'c']]);
});

test('an import that another user finds in the tab stays that of the first', async ({ page }) => {
  await ask('CREATE TABLE demo.logins (id INT NOT NULL, note STRING)');
  await ask('GRANT LOAD_PRIV, SELECT_PRIV ON demo.logins TO reader');
  await logIn(page, '#/import?db=demo&table=logins&chunk=1');
  await page.route('**/_stream_load', (route) => (route.request().headers().two_phase_commit ? route.continue() : route.abort()));
  await choose(page, 'logins.csv', large());
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'logins.csv')).toContainText('Trying again');
  await page.getByRole('button', { name: /^Log out/ }).click();
  await page.unroute('**/_stream_load');
  await logIn(page, '#/import', 'reader');
  await expect(page.getByRole('region', { name: 'Files' })).toBeVisible();
  await expect(page.getByRole('main')).not.toContainText('logins.csv');
  await page.getByRole('button', { name: /^Log out/ }).click();
  await logIn(page, '#/import');
  await expect(job(page, 'logins.csv')).toContainText('The login that began this import has ended.');
  expect(await ask('SELECT COUNT(*) FROM demo.logins')).toEqual([[0]]);
});

test('a refused load says why and stops, and a file that can not be loaded is refused at once', async ({ page }) => {
  await logIn(page, '#/import?db=demo&table=orders');
  await choose(page, 'packed.csv.gz', '\u001f\u008b');
  await page.getByLabel(/Drop CSV/).setInputFiles({ name: 'packed.csv.gz', mimeType: 'application/gzip', buffer: Buffer.from([0x1f, 0x8b, 8, 0]) });
  await expect(page.getByRole('alert')).toContainText('Unpack it first');
  await choose(page, 'orders.csv', '100000,note\n');
  await expect(page.getByRole('button', { name: 'Start import' })).toBeEnabled();
  await page.route('**/_stream_load', (route) => route.fulfill({ status: 307, headers: { location: 'http://127.0.0.1:1/' } }));
  await page.getByLabel('Empty field').selectOption('text');
  await expect(page.getByText('Open the console at its webserver_port.')).toBeVisible();
  await page.route('**/_stream_load', (route) => route.fulfill({ json: { Status: 'Fail', Message: 'No such luck.', Retry: 'never' } }));
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect(job(page, 'orders.csv')).toContainText('No such luck.');
  await expect(job(page, 'orders.csv')).toContainText('failed');
});

test('chunks are cut where rows end, whatever their size', async () => {
  const content = 'a,"x\ny",1\nb,"he said ""hi\n""",2\r\n"c"d,"e,\n",3\nf,q"uo\n"",\n,,"last"';
  const rows = ['a,"x\ny",1\n', 'b,"he said ""hi\n""",2\r\n', '"c"d,"e,\n",3\n', 'f,q"uo\n', '"",\n', ',,"last"'];
  const array = '{"a":[1,{"b":"],["}]},{"c":"\\"}"} , {"d":2}]';
  const check = async (text: string, shape: Shape, whole: string[]) => {
    for (let bytes = 1; bytes < text.length + 2; bytes += 1) {
      const pieces: string[] = [];
      for (let at = 0; at < text.length; ) {
        const next = await cut(new Blob([text]), shape, at, bytes);
        expect(next).toBeGreaterThan(at);
        pieces.push(text.slice(at, next));
        at = next;
      }
      expect(pieces.join('')).toBe(text);
      let taken = 0;
      for (const piece of pieces) {
        let joined = '';
        while (joined.length < piece.length) joined += whole[taken++];
        expect(joined).toBe(piece);
      }
    }
  };
  await check(content, { format: 'csv', separator: ',', quote: '"' }, rows);
  await check(content, { format: 'csv', separator: ',', quote: '' }, content.split(/(?<=\n)/));
  await check('{"a":1}\n\n{"b":2}', { format: 'lines', separator: ',', quote: '' }, ['{"a":1}\n', '\n', '{"b":2}']);
  await check(array, { format: 'array', separator: ',', quote: '' }, ['{"a":[1,{"b":"],["}]},', '{"c":"\\"}"} ,', ' {"d":2}]']);
  expect(fields('"c"d,"e,\n",\\N,"\\N"', { format: 'csv', separator: ',', quote: '"' })).toEqual(['"c"d', 'e,\n', null, '\\N']);
});

test('formats, separators, headers and types are guessed', async () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const csv = (separator: string): Shape => ({ format: 'csv', separator, quote: '"' });
  expect(['id,b\n1,2', '{"a":1}\n', ' [{"a":1}]', 'PAR1'].map((text) => guessFormat(bytes(text), 'file'))).toEqual(['csv', 'lines', 'array', 'parquet']);
  expect(['a,b;c\n1,2;3\n', 'a;b;c\n"1,0";2;3\n', 'a\tb\n1\t2\n', 'one\ntwo\n'].map((text) => guessSeparator(bytes(text), '"'))).toEqual([',', ';', '\t', ',']);
  expect(['id,name\n1,x\n', '1,x\n2,y\n', 'a,a\nb,b\n'].map((text) => guessHeader(bytes(text), csv(',')))).toEqual([true, false, false]);
  const types = (...values: (string | null)[]) => typeOf(values);
  expect([
    types('1', '-2', null), types('9223372036854775808'), types('007'), types('1.5', '2'), types('1e5'), types('true', 'FALSE'), types('2026-01-31'),
    types('2026-01-31T10:00:00.125Z'), types('{"a":1}'), types('2026-01-31', 'x'), types(null, ''),
  ]).toEqual(['BIGINT', 'LARGEINT', 'STRING', 'DECIMAL(18, 2)', 'DOUBLE', 'BOOLEAN', 'DATE', 'DATETIME(3)', 'JSON', 'STRING', 'STRING']);
  expect(sample(bytes('\uFEFFid,note\n1,"a\nb"\n'), true, csv(','), true)).toMatchObject({ skip: 11, rows: [{ raw: '1,"a\nb"', values: ['1', 'a\nb'] }] });
});
