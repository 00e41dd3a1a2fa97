// Starts the server that TRIBUTARY names with a new directory, fills it, and keeps loads running until the tests end.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HOSTILE, openDoor } from './door';

export const PASSWORD = 'Correct-Horse-7';

export default async function setup(): Promise<() => Promise<void>> {
  const binary = process.env.TRIBUTARY;
  if (!binary) throw new Error('TRIBUTARY must name the server binary.');
  const directory = await mkdtemp(join(tmpdir(), 'tributary-console-'));
  // The server ends with this process, also when the setup fails.
  const child = spawn(binary, ['serve', '--storage-root-path', directory, '--bind', '127.0.0.1', '--query-port', '0', '--http-port', '0', '--webserver-port', '0']);
  process.once('exit', () => child.kill('SIGKILL'));
  const port = await new Promise<number>((done, fail) => {
    let output = '';
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      const found = /tributary ready: .*\bhttp=127\.0\.0\.1:(\d+)/.exec(output);
      if (found) done(Number(found[1]));
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', () => fail(new Error(`The server ended:\n${output}`)));
  });
  const api = `http://127.0.0.1:${port}/api`;
  let authorization = `Basic ${btoa('root:')}`;
  const run = async (stmt: string) => {
    const answer = await fetch(`${api}/query/internal`, { method: 'POST', headers: { Authorization: authorization }, body: JSON.stringify({ stmt }) });
    const body = (await answer.json()) as { code: number; data: unknown };
    if (body.code !== 0) throw new Error(`${stmt}: ${JSON.stringify(body.data)}`);
  };
  const load = (table: string, rows: string, headers: Record<string, string> = {}) =>
    fetch(`${api}/demo/${encodeURIComponent(table)}/_stream_load`, {
      method: 'PUT', body: rows, headers: { Authorization: authorization, column_separator: ',', max_filter_ratio: '1', ...headers },
    }).then((answer) => answer.text());

  await run('CREATE DATABASE demo');
  await run(`CREATE TABLE demo.clicks (id INT NOT NULL, page VARCHAR(200), at DATETIME) PROPERTIES ("group_commit_interval_ms" = "500")`);
  await run('CREATE TABLE demo.orders (id INT NOT NULL, note VARCHAR(200))');
  await run(`CREATE USER reader IDENTIFIED BY '${PASSWORD}'`);
  await run(`ALTER USER root IDENTIFIED BY '${PASSWORD}'`).catch(() => run(`SET PASSWORD FOR 'root' = PASSWORD('${PASSWORD}')`));
  authorization = `Basic ${btoa(`root:${PASSWORD}`)}`;
  await load('clicks', `1,home,2026-01-01 00:00:00\n${HOSTILE},bad,2026-01-01 00:00:00\n`);

  // Rejected rows end after a while, so that pages which show the newest 200 keep the first.
  let id = 0;
  const timer = setInterval(() => {
    id += 1;
    const rows = Array.from({ length: 50 }, (_, at) => `${id * 50 + at},/page/${at},2026-01-01 00:00:00`).join('\n');
    void load('clicks', `${rows}\n${id % 10 === 0 && id < 300 ? 'x,bad,now\n' : ''}`, { group_commit: 'async_mode' }).catch(() => undefined);
    if (id % 4 === 0) void load('orders', `${id},note\n`, { group_commit: 'async_mode' }).catch(() => undefined);
  }, 100);

  const door = await openDoor(port);
  process.env.CONSOLE = door.address;
  process.env.SERVER = api;
  process.env.STORAGE = directory;
  return async () => {
    clearInterval(timer);
    door.server.closeAllConnections();
    door.server.close();
    const ended = new Promise((done) => child.once('exit', done));
    child.kill('SIGTERM');
    await ended;
    await rm(directory, { recursive: true, force: true });
  };
}
