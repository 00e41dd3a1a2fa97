// A file of 1 GiB, dropped onto the Import page and interrupted half way. Takes minutes: GIANT=1 scripts/test-console --binary SERVER giant
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Page } from '@playwright/test';
import { ask, expect, logIn, test } from './page';

const BYTES = 1024 ** 3;

test.skip(!process.env.GIANT, 'GIANT=1 asks for it');
test.setTimeout(30 * 60_000);

let directory = '';
test.beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tributary-giant-'));
});
test.afterAll(() => rm(directory, { recursive: true, force: true }));

/** Writes a file of at least [`BYTES`], and returns its number of rows. */
async function write(path: string): Promise<number> {
  const out = createWriteStream(path);
  let [bytes, rows] = [0, 0];
  while (bytes < BYTES) {
    let block = rows === 0 ? 'id,note,value\n' : '';
    for (let at = 0; at < 10_000; at++, rows++) block += `${rows},"row ${rows}, ""quoted""\nand more",${rows / 4}\n`;
    bytes += block.length;
    if (!out.write(block)) await new Promise<void>((done) => out.once('drain', () => done()));
  }
  out.end();
  await finished(out);
  return rows;
}

/** Drags a file from outside of the browser onto the page. */
async function drop(page: Page, path: string): Promise<void> {
  const target = await page.getByText('Drop CSV').boundingBox();
  if (!target) throw new Error('There is nowhere to drop it.');
  const session = await page.context().newCDPSession(page);
  const [x, y] = [target.x + target.width / 2, target.y + target.height / 2];
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await session.send('Input.dispatchDragEvent', { type, x, y, data: { items: [], files: [path], dragOperationsMask: 1 } });
  }
}

test('a file of 1 GiB is dropped, the page is reloaded half way, and each row is there once', async ({ page }) => {
  const path = join(directory, 'giant.csv');
  const rows = await write(path);
  await ask('CREATE TABLE demo.giant (id BIGINT NOT NULL, note STRING, value DOUBLE)');
  const count = async () => (await ask('SELECT COUNT(*) FROM demo.giant'))[0]?.[0] as number;
  await logIn(page, '#/import?db=demo&table=giant');
  await drop(page, path);
  await expect(page.getByRole('region', { name: 'Preview' })).toContainText('took 100 of the first 100');
  const began = Date.now();
  await page.getByRole('button', { name: 'Start import' }).click();
  await expect.poll(count, { timeout: 15 * 60_000, intervals: [500] }).toBeGreaterThan(rows / 2);
  await page.reload();
  await expect(page.getByRole('region', { name: 'Interrupted imports' })).toContainText('giant.csv into demo.giant');
  const before = await count();
  expect(before).toBeLessThan(rows);
  await drop(page, path);
  await page.getByRole('button', { name: /Go on at/ }).click();
  const job = page.getByRole('article', { name: 'giant.csv' });
  await expect(job).toContainText('done', { timeout: 15 * 60_000 });
  await expect(job).toContainText(`${rows.toLocaleString('en')} rows loaded`);
  console.log(`${rows} rows in ${(Date.now() - began) / 1000} s; ${before} were there at the reload`);
  expect(await ask('SELECT COUNT(*), COUNT(DISTINCT id), SUM(id), SUM(value) FROM demo.giant')).toEqual([
    [rows, rows, (rows * (rows - 1)) / 2, (rows * (rows - 1)) / 8],
  ]);
});
