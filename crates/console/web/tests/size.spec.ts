// Limits of the size and the contents of dist.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, logIn, test } from './page';

const DIST = join(import.meta.dirname, '../../dist');
const size = async (file: string) => gzipSync(await readFile(join(DIST, file)), { level: 9 }).length;

const sum = async (files: string[]) => (await Promise.all(files.map(size))).reduce((total, bytes) => total + bytes, 0);
const FRAME = ['index.html', 'app.js', 'base.js', 'app.css', 'icon.svg'];

test('the first view takes at most 60 KiB, the SQL page 180 KiB', async () => {
  expect(await sum([...FRAME, 'overview.js', 'chart.js'])).toBeLessThanOrEqual(60 * 1024);
  expect(await sum([...FRAME, 'sql.js', 'editor.js', 'chart.js', 'plot.js'])).toBeLessThanOrEqual(180 * 1024);
});

test('a page brings its own chunk only when it is opened', async ({ page }) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname.replace('/ui/', '')));
  await page.goto(process.env.CONSOLE!);
  await expect(page.getByLabel('Password')).toBeVisible();
  expect(asked.filter((file) => file.endsWith('.js')).sort()).toEqual(['app.js', 'base.js']);
  await logIn(page, '#/overview');
  await expect(page.getByRole('region', { name: 'Problems' })).toBeVisible();
  expect([...new Set(asked.filter((file) => file.endsWith('.js')))].sort()).toEqual(['app.js', 'base.js', 'chart.js', 'overview.js']);
});

test('dist has the known files, and no inline script or style', async () => {
  expect((await readdir(DIST)).sort()).toEqual([
    'admin.js', 'app.css', 'app.js', 'base.js', 'chart.js', 'editor.js', 'icon.svg', 'import.js', 'index.html', 'overview.js', 'plot.js', 'sql.js', 'tables.js',
  ]);
  const html = await readFile(join(DIST, 'index.html'), 'utf8');
  expect(html).not.toMatch(/<style|style=|<script(?![^>]*\bsrc=)|(src|href)="\//);
});
