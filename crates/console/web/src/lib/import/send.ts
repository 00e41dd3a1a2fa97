// Stream Loads as the user who is logged in, and the trial of a preview.
import { Refused } from '../api';
import { end, session } from '../session.svelte';
import type { Format } from './guess';

export type Answer = {
  TxnId: number; Status: string; Message: string; ExistingJobStatus?: string; ErrorURL?: string; Retry?: string; RetryAfterMs?: number;
  NumberLoadedRows: number; NumberFilteredRows: number;
};
export type Settings = {
  db: string; table: string; format: Format; separator: string; quote: string; emptyIsNull: boolean;
  /** The header `columns`; empty: the columns of the table, in order. */
  columns: string;
};

/** Headers hold bytes; texts are sent as UTF-8. */
const bytes = (text: string) => Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
const visible = (text: string) => (/^[\x21-\x7e]$/.test(text) ? text : `\\x${text.charCodeAt(0).toString(16).padStart(2, '0')}`);

export function headers(settings: Settings, label: string): Record<string, string> {
  const { format, separator, quote } = settings;
  const list: Record<string, string> = { label, strict_mode: 'true', rejected_rows: 'keep', group_commit: 'off_mode' };
  if (settings.columns) list.columns = bytes(settings.columns);
  if (format === 'csv') {
    list.column_separator = visible(separator);
    if (quote) list.enclose = quote;
    if (settings.emptyIsNull) list.empty_field_as_null = 'true';
  } else if (format === 'parquet') list.format = 'parquet';
  else list.format = 'json';
  if (format === 'lines') list.read_json_by_line = 'true';
  if (format === 'array') list.strip_outer_array = 'true';
  return list;
}

async function request(path: string, list: Record<string, string>, body: BodyInit | undefined, signal?: AbortSignal): Promise<Response> {
  const used = session.current?.authorization;
  if (!used) throw new Refused('Not logged in.');
  const response = await fetch(new URL(`../api/${path}`, document.baseURI), {
    method: body === undefined && list.txn_operation === undefined ? 'GET' : 'PUT', credentials: 'omit', cache: 'no-store', redirect: 'manual',
    headers: { Authorization: used, ...list }, body, signal,
  });
  if (response.type === 'opaqueredirect') throw new Refused('The server redirects loads (redirect_loads). Open the console at its webserver_port.');
  if (response.status === 401) {
    end(used);
    throw new Refused('The server refused the user or the password.');
  }
  return response;
}

/** Loads a body. Fails with `Refused` if sending it again is useless, and with another error if it may help. */
export async function load(settings: Settings, label: string, body: BodyInit, signal?: AbortSignal, more: Record<string, string> = {}): Promise<Answer> {
  const path = `${encodeURIComponent(settings.db)}/${encodeURIComponent(settings.table)}/_stream_load`;
  const response = await request(path, { ...headers(settings, label), ...more }, body, signal);
  const text = await response.text();
  try {
    const answer = JSON.parse(text) as Answer;
    if (typeof answer.Status === 'string') return answer;
  } catch {
    // Not a load's answer.
  }
  const failure = `HTTP ${response.status}: ${text.slice(0, 300)}`;
  throw response.status >= 400 && response.status < 500 && ![408, 429].includes(response.status) ? new Refused(failure) : new Error(failure);
}

export type Trial = { rejected: number; reasons: string[] };

/**
 * Lets the server decode the rows and throws them away: a two-phase load that is aborted. Nothing becomes visible.
 */
export async function attempt(settings: Settings, body: string, signal: AbortSignal): Promise<Trial> {
  const label = `import_check_${Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(16)).join('_')}`;
  const abort = () => request(`${encodeURIComponent(settings.db)}/_stream_load_2pc`, { label, txn_operation: 'abort' }, undefined);
  // Not cancelled when the page asks for something else: a load that nobody aborts would wait for an hour.
  const answer = await load(settings, label, body, undefined, { two_phase_commit: 'true' }).catch(async (failure) => {
    if (!(failure instanceof Refused)) await abort().catch(() => undefined);
    throw failure;
  });
  if (answer.Status !== 'Success') throw new Error(answer.Message);
  await abort();
  if (!answer.NumberFilteredRows || !answer.ErrorURL) return { rejected: 0, reasons: [] };
  const { search } = new URL(answer.ErrorURL);
  const reasons = await (await request(`_load_error_log${search}`, {}, undefined, signal)).text();
  return { rejected: answer.NumberFilteredRows, reasons: reasons.split(/; ?\n(?=Reason: |\s*$)/).map((line) => line.replace(/^Reason: /, '')).filter((line) => line.trim()) };
}

/** Which rows a trial has rejected and why, by the row or the value that each reason has. Equal rows have equal reasons. */
export function verdicts(trial: Trial, rows: { raw: string; values: (string | null)[] }[], names: string[]): Map<number, string> {
  const found = new Map<number, string>();
  for (const line of trial.reasons) {
    const parts = /^([\s\S]*?)\.? src line \[([\s\S]*)\]$/.exec(line);
    const reason = parts?.[1] ?? line;
    const source = parts?.[2] ?? '';
    const wrong = /^column\((.*?)\) value is incorrect while strict mode is true, src value is ([\s\S]*)$/.exec(reason);
    const long = /^column_name\[(.*?)\], .* first 32 bytes of input str: \[([\s\S]*)\] schema length: \d+; actual length: (\d+)/.exec(reason);
    rows.forEach(({ raw, values }, at) => {
      const of = (column: string) => values[names.indexOf(column)] ?? null;
      const matches = source && (source === raw || source === joined(values, false) || source === joined(values, true));
      const hasValue = wrong && of(wrong[1]!) === wrong[2];
      const hasText = long && of(long[1]!)?.startsWith(long[2]!) && new TextEncoder().encode(of(long[1]!)!).length === Number(long[3]);
      if (!found.has(at) && (matches || hasValue || hasText)) found.set(at, reason);
    });
  }
  return found;
}

const joined = (values: (string | null)[], emptyIsNull: boolean) => values.map((value) => (value === null || (emptyIsNull && value === '') ? 'NULL' : value)).join(' ');
