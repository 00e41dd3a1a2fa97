// The login: a token of twelve hours in sessionStorage; without one, the credentials in memory only.
import { type Answer, execute, Failed, type Options, Refused } from './api';
import { name } from './quote';

const KEY = 'tributary.session';
type Stored = { user: string; token: string; authorization: string };

function load(): Stored | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
    return typeof stored?.authorization === 'string' ? stored : null;
  } catch {
    return null;
  }
}

export const session = $state<{ current: Stored | null; ended: boolean }>({ current: load(), ended: false });

function basic(user: string, password: string): string {
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${user}:${password}`)))}`;
}

export async function logIn(user: string, password: string): Promise<void> {
  const authorization = basic(user, password);
  const token = `console_${crypto.getRandomValues(new Uint32Array(2)).join('_')}`;
  try {
    const answer = await execute(authorization, `CREATE TOKEN ${name(token)} EXPIRES IN 12 HOUR COMMENT 'web console'`);
    const at = answer.columns.findIndex((column) => column.name === 'Token');
    session.current = { user, token, authorization: `Bearer ${String(answer.rows[0]?.[at])}` };
    sessionStorage.setItem(KEY, JSON.stringify(session.current));
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    await execute(authorization, 'SELECT 1');
    session.current = { user, token: '', authorization };
  }
  session.ended = false;
}

function forget(): void {
  session.current = null;
  sessionStorage.removeItem(KEY);
}

/** Ends the login whose credentials the server has refused, unless another one has begun since. */
export function end(used: string): void {
  if (session.current?.authorization !== used) return;
  forget();
  session.ended = true;
}

export async function logOut(): Promise<void> {
  const { current } = session;
  forget();
  session.ended = false;
  if (current?.token) await execute(current.authorization, `DROP TOKEN ${name(current.token)}`).catch(() => undefined);
}

/** Runs a statement as the user who is logged in; an answer of 401 ends the login and keeps the URL. */
export async function sql(stmt: string, options: Options = {}): Promise<Answer> {
  const used = session.current?.authorization;
  if (!used) throw new Refused('Not logged in.');
  try {
    return await execute(used, stmt, options);
  } catch (error) {
    if (error instanceof Refused) end(used);
    throw error;
  }
}
