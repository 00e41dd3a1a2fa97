// Limits of the size and the contents of dist.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from '@playwright/test';

const DIST = join(import.meta.dirname, '../../dist');
const size = async (file: string) => gzipSync(await readFile(join(DIST, file)), { level: 9 }).length;

test('the first view takes at most 60 KiB, the SQL page 180 KiB', async () => {
  const first = (await size('index.html')) + (await size('app.js')) + (await size('app.css')) + (await size('icon.svg'));
  expect(first).toBeLessThanOrEqual(60 * 1024);
  expect(first + (await size('editor.js'))).toBeLessThanOrEqual(180 * 1024);
});

test('dist has the known files, and no inline script or style', async () => {
  expect((await readdir(DIST)).sort()).toEqual(['app.css', 'app.js', 'editor.js', 'icon.svg', 'index.html']);
  const html = await readFile(join(DIST, 'index.html'), 'utf8');
  expect(html).not.toMatch(/<style|style=|<script(?![^>]*\bsrc=)|(src|href)="\//);
});
