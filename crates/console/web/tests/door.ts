// Serves dist with the content security policy of the server and forwards /api to it. Three tables are answered here, so that the tests
// decide what they contain: `problems`, `server_samples` and `nodes`.
import { readFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import { join } from 'node:path';

const DIST = join(import.meta.dirname, '../../dist');
const TYPES: Record<string, string> = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
export const HOSTILE = '<img src=x onerror=alert(1)>';

function table(rows: Record<string, unknown>[]): string {
  const names = Object.keys(rows[0]!);
  return JSON.stringify({
    msg: 'success', code: 0, count: 0,
    data: { type: 'result_set', meta: names.map((name) => ({ name, type: 'STRING' })), data: rows.map((row) => names.map((name) => row[name])), status: {}, time: 1 },
  });
}

const time = (at: number) => new Date(at).toISOString().slice(0, 23).replace('T', ' ');

function problems(): string {
  return table([
    { CODE: 'TABLE_LAGS', SEVERITY: 'CRITICAL', TABLE_SCHEMA: 'demo', TABLE_NAME: 'clicks', SUBJECT: HOSTILE, SINCE: time(Date.now() - 40_000),
      PROBLEM: `Table demo.clicks lags 40 s ${HOSTILE}`, CAUSE: 'Its group waits for the disk.', WAY_OUT: 'Free space in the directory of the log.' },
    { CODE: 'CERTIFICATE_ENDS', SEVERITY: 'WARNING', TABLE_SCHEMA: null, TABLE_NAME: null, SUBJECT: null, SINCE: time(Date.now()),
      PROBLEM: 'The certificate ends in 6 days.', CAUSE: null, WAY_OUT: null },
  ]);
}

function samples(every: number): string {
  return table(Array.from({ length: every === 1 ? 900 : 720 }, (_, at, count = every === 1 ? 900 : 720) => {
    const wave = 1 + Math.sin(at / 40) / 2;
    return {
      SAMPLED_AT: time(Date.now() - (count - at) * (every === 1 ? 1 : 120) * 1000), EVERY_SECONDS: every, LOADED_ROWS_PER_SECOND: 250_000 * wave,
      LOGGED_BYTES_PER_SECOND: 31_000_000 * wave, LOADS_PER_SECOND: 900 * wave, GROUPS_PER_SECOND: 12, REJECTED_ROWS_PER_SECOND: 3000 * wave,
      SYNCS_PER_SECOND: 420 / wave, LOAD_MEMORY_BYTES: 90_000_000 * wave, WAL_LIVE_BYTES: 210_000_000, RESIDENT_BYTES: 540_000_000,
      WAITING_LOADS: Math.round(20 * wave), CONNECTIONS: 40, RUNNING_STATEMENTS: 6,
    };
  }));
}

function nodes(): string {
  const node = (at: number, role: string) => ({
    NAME: `node-${at}`, ROLE: role, HOST: `db${at}.example`, QUERY_PORT: 9030 + at, HTTP_PORT: 8030, FLIGHT_PORT: role === 'READER' ? 8070 : null,
    VERSION: 'tributary-0.1.0', SINCE: time(0), HEARD_MS: at === 2 ? 42_000 : 1200, ROWS_AGE_MS: at === 2 ? null : 900,
    ALIVE: at === 2 ? 'NO' : 'YES', HEARD_AT: time(Date.now()), COMPUTES_PARTS: role === 'READER' ? 'YES' : 'NO',
  });
  return table([node(0, 'WRITER'), node(1, 'READER'), node(2, 'READER')]);
}

/** Starts the door on a free port, in front of the server on `port`. */
export async function openDoor(port: number): Promise<{ server: Server; address: string }> {
  const server = createServer(async (incoming, outgoing) => {
    const path = new URL(incoming.url!, 'http://localhost').pathname;
    if (path.startsWith('/api/')) {
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of incoming) chunks.push(chunk as Buffer);
      } catch {
        return; // The page has gone while it was sending.
      }
      const body = Buffer.concat(chunks);
      const faked = /FROM information_schema\.(problems|server_samples|nodes)\b.*?(= 10)?/.exec(body.toString());
      const forward = request({ host: '127.0.0.1', port, path: incoming.url, method: incoming.method, headers: { ...incoming.headers, ...(faked ? { 'content-length': '19' } : {}) } }, (answer) => {
        if (faked && answer.statusCode === 200) {
          answer.resume();
          outgoing.setHeader('Content-Type', 'application/json');
          const rows = { problems, nodes, server_samples: () => samples(body.includes('EVERY_SECONDS = 10') ? 10 : 1) };
          outgoing.end(rows[faked[1] as keyof typeof rows]());
        } else {
          outgoing.writeHead(answer.statusCode!, answer.headers);
          answer.pipe(outgoing);
        }
      });
      forward.on('error', () => outgoing.destroy());
      outgoing.on('close', () => forward.destroy());
      forward.end(faked ? '{"stmt":"SELECT 1"}' : body);
      return;
    }
    const file = path === '/ui/' ? 'index.html' : /^\/ui\/([a-z]+\.[a-z]+)$/.exec(path)?.[1];
    try {
      const content = await readFile(join(DIST, file ?? '/'));
      outgoing.writeHead(200, {
        'Content-Type': TYPES[file!.split('.')[1]!]!, 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-cache',
      });
      outgoing.end(content);
    } catch {
      outgoing.writeHead(404).end();
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port: own } = server.address() as { port: number };
  return { server, address: `http://127.0.0.1:${own}/ui/` };
}
