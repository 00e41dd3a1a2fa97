// Statements over HTTP: the only way to the server. Knows nothing of pages.
import type { Value } from './format';

export type Column = { name: string; type: string };
export type Row = Record<string, Value>;
export type Answer = { columns: Column[]; rows: Value[][]; affected: number | null; info: string; time: number };

export class Refused extends Error {}

export class Failed extends Error {
  constructor(message: string, readonly number: number | null, readonly retry: string | null) {
    super(message);
  }
}

/** Keeps integers that a number of JavaScript can't hold, as their text. */
function exact(_: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;
}

export type Options = { db?: string; signal?: AbortSignal; limit?: number };

export async function execute(authorization: string, stmt: string, options: Options = {}): Promise<Answer> {
  const path = `../api/query/internal${options.db ? `/${encodeURIComponent(options.db)}` : ''}`;
  const response = await fetch(new URL(path, document.baseURI), {
    method: 'POST',
    credentials: 'omit',
    cache: 'no-store',
    headers: { Authorization: authorization, 'Content-Type': 'application/json' },
    body: JSON.stringify(options.limit === undefined ? { stmt } : { stmt, limit: options.limit }),
    signal: options.signal,
  });
  if (response.status === 401) throw new Refused('The server refused the user or the password.');
  let body;
  try {
    body = JSON.parse(await response.text(), exact);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Failed(`The answer is not whole (HTTP ${response.status}).`, null, null);
  }
  if (!response.ok || body.code !== 0) {
    throw new Failed(String(body.data ?? body.msg ?? `HTTP ${response.status}`), body.error?.number ?? null, body.error?.retry ?? null);
  }
  const { meta = [], data = [], status = {}, time = 0 } = body.data ?? {};
  return { columns: meta, rows: data, affected: status.affected_rows ?? null, info: status.info ?? '', time };
}

/** Rows as objects, by column name. */
export function objects(answer: Answer): Row[] {
  const names = answer.columns.map((column) => column.name.toUpperCase());
  return answer.rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at] ?? null])));
}
