// An import: a file that goes to the server as one load after the other. Each chunk has a label that follows from the file and the chunk,
// and the boundaries of the chunks are stored, so that an import that was interrupted goes on where it was, and no row is loaded twice.
import { objects, Refused } from '../api';
import { literal } from '../quote';
import { session, sql } from '../session.svelte';
import { cut, type Shape } from './rows';
import { type Answer, load, type Settings } from './send';

const KEY = 'tributary.import';
const PLANS_MOST = 20;
const RATE_MS = 10_000;
const PAUSE_MOST_MS = 10_000;

/** What is stored of an import; never a row of it. */
export type Plan = {
  file: string; size: number; mtime: number;
  settings: Settings; chunk: number; skip: number; header: boolean;
  /** The column of each field; empty for one that is not loaded. */
  map: string[];
  /** Counts imports of the same file with the same settings. */
  round: number;
  /** Where chunks begin; the last one is where the next chunk begins. */
  bounds: number[];
  done: number; loaded: number; rejected: number; at: number;
};

/** FNV-1a with 64 bits: equal files and settings have equal labels. */
function hash(text: string): string {
  let value = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) value = BigInt.asUintN(64, (value ^ BigInt(byte)) * 0x100000001b3n);
  return value.toString(16).padStart(16, '0');
}

/** The part of the labels that is the same for all imports of this file into this table. */
export function fileLabel(file: { name: string; size: number; lastModified: number }, settings: Settings): string {
  const safe = file.name.replace(/[^A-Za-z0-9]+/g, '-').slice(0, 40);
  return `import_${safe}_${hash(JSON.stringify([file.name, file.size, file.lastModified, settings.db, settings.table]))}`;
}

/** The labels of a plan without the number of the chunk. Settings that move boundaries are part of them. */
export function planLabel(plan: Plan): string {
  const { format, separator, quote, columns, emptyIsNull } = plan.settings;
  const how = hash(JSON.stringify([format, separator, quote, columns, emptyIsNull, plan.chunk, plan.skip])).slice(0, 8);
  return `${fileLabel({ name: plan.file, size: plan.size, lastModified: plan.mtime }, plan.settings)}_${how}_${plan.round}`;
}

const place = (plan: Plan) => `${KEY}.${session.current?.user ?? ''}.${planLabel(plan)}`;

export function plans(): Plan[] {
  const start = `${KEY}.${session.current?.user ?? ''}.`;
  return Object.keys(localStorage).filter((key) => key.startsWith(start)).flatMap((key) => {
    try {
      const plan = JSON.parse(localStorage.getItem(key)!) as Plan;
      return Array.isArray(plan.bounds) && plan.settings ? [plan] : [];
    } catch {
      return [];
    }
  }).sort((one, other) => other.at - one.at);
}

export function store(plan: Plan): void {
  plan.at = Date.now();
  try {
    localStorage.setItem(place(plan), JSON.stringify(plan));
  } catch {
    // Full: without its plan an import begins from the start again, and its labels say what is loaded.
  }
  for (const old of plans().slice(PLANS_MOST)) localStorage.removeItem(place(old));
}

export function forget(plan: Plan): void {
  localStorage.removeItem(place(plan));
}

export const acknowledged = (plan: Plan) => plan.bounds[plan.done]! - plan.skip;
export const isComplete = (plan: Plan) => plan.bounds[plan.done]! >= plan.size;

const wait = (ms: number, signal: AbortSignal) => new Promise<void>((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true });
});

/** An import of this page. It goes on while other pages of the console are shown, and ends with the tab or the login. */
export class Job {
  state = $state<'running' | 'pausing' | 'paused' | 'done' | 'failed' | 'cancelled'>('paused');
  bytes = $state(0);
  loaded = $state(0);
  rejected = $state(0);
  chunks = $state(0);
  rate = $state(0);
  /** Why it waits at the moment. */
  note = $state('');
  error = $state('');
  #abort = new AbortController();
  readonly #login = session.current?.authorization;
  #past: [number, number][] = [];

  constructor(readonly file: File, readonly plan: Plan) {
    this.#show();
  }

  #show(): void {
    const { plan } = this;
    this.bytes = acknowledged(plan);
    this.loaded = plan.loaded;
    this.rejected = plan.rejected;
    this.chunks = plan.done;
    const now = Date.now();
    this.#past = [...this.#past.filter(([at]) => now - at < RATE_MS), [now, this.bytes]];
    const [at, bytes] = this.#past[0]!;
    this.rate = now > at ? ((this.bytes - bytes) / (now - at)) * 1000 : 0;
  }

  pause(): void {
    if (this.state === 'running') this.state = 'pausing';
  }

  cancel(): void {
    this.#abort.abort();
    this.state = 'cancelled';
  }

  async run(): Promise<void> {
    if (this.state === 'running' || this.state === 'pausing') return;
    this.state = 'running';
    this.error = '';
    this.#past = [];
    const abort = new AbortController();
    this.#abort = abort;
    this.#show();
    try {
      // A chunk is sent after the one before: in a table with keys the order of rows decides.
      while (!isComplete(this.plan) && this.state === 'running') await this.#chunk(abort.signal);
      if (!abort.signal.aborted) this.state = isComplete(this.plan) ? 'done' : 'paused';
    } catch (failure) {
      if (abort.signal.aborted) return;
      this.error = failure instanceof Error ? failure.message : String(failure);
      this.state = 'failed';
    }
    this.note = '';
  }

  async #chunk(signal: AbortSignal): Promise<void> {
    const { plan, file } = this;
    const { format } = plan.settings;
    const from = plan.bounds[plan.done]!;
    let to = plan.bounds[plan.done + 1];
    if (to === undefined) {
      to = format === 'parquet' ? file.size : await cut(file, plan.settings as Shape, from, plan.chunk);
      if (signal.aborted) return;
      plan.bounds.push(to);
      store(plan);
    }
    const label = `${planLabel(plan)}_${plan.done}`;
    const [loaded, rejected] = (await this.#isEmpty(from, to)) ? [0, 0] : await this.#send(label, from, to, signal);
    if (signal.aborted) return;
    plan.done += 1;
    plan.loaded += loaded;
    plan.rejected += rejected;
    store(plan);
    this.#show();
  }

  /** Whether nothing but blanks and the end of an array are left. */
  async #isEmpty(from: number, to: number): Promise<boolean> {
    return this.plan.settings.format !== 'parquet' && to - from < 64 && /^[\s\]]*$/.test(await this.file.slice(from, to).text());
  }

  /** A load of a part of the file. The browser reads it from the disk while it is sent. */
  #body(from: number, to: number): Blob {
    return this.plan.settings.format === 'array' ? new Blob(['[', this.file.slice(from, to - 1), ']']) : this.file.slice(from, to);
  }

  async #send(label: string, from: number, to: number, signal: AbortSignal): Promise<[number, number]> {
    for (let pause = 500; ; pause = Math.min(pause * 2, PAUSE_MOST_MS)) {
      if (signal.aborted) return [0, 0];
      if (session.current?.authorization !== this.#login) throw new Refused('The login that began this import has ended.');
      let answer: Answer;
      try {
        answer = await load(this.plan.settings, label, this.#body(from, to), signal);
      } catch (failure) {
        if (signal.aborted) return [0, 0];
        if (failure instanceof Refused) throw failure;
        // A file that has changed or was deleted fails like the network; reading it tells them apart.
        await this.file.slice(from, from + 1).arrayBuffer();
        // The load may have arrived: the same label tells.
        this.note = `No answer (${failure instanceof Error ? failure.message : String(failure)}). Trying again.`;
        await wait(pause, signal);
        continue;
      }
      this.note = '';
      if (answer.Status === 'Success' || answer.Status === 'Publish Timeout') return [answer.NumberLoadedRows, answer.NumberFilteredRows];
      if (answer.Status === 'Label Already Exists') {
        if (answer.ExistingJobStatus === 'FINISHED') return this.#counts(label);
        this.note = 'The server is still busy with the same chunk, sent before.';
      } else if (answer.Retry === 'safe' || answer.Retry === 'after_ms') this.note = `${answer.Message} Trying again.`;
      else throw new Error(answer.Message);
      await wait(answer.RetryAfterMs ?? pause, signal);
    }
  }

  /** What an earlier load with this label has stored. */
  async #counts(label: string): Promise<[number, number]> {
    const { db } = this.plan.settings;
    const number = async (column: string, table: string) => {
      const stmt = `SELECT MAX(${column}) AS FOUND FROM information_schema.${table} WHERE TABLE_SCHEMA = ${literal(db)} AND LABEL = ${literal(label)}`;
      const [row] = await sql(stmt).then(objects).catch(() => []);
      return Number(row?.FOUND ?? 0);
    };
    return [await number('LOADED_ROWS', 'transactions'), await number('FILTERED_ROWS', 'rejected_rows')];
  }
}

/** Imports of this page, by the user who began them. */
export const jobs = $state<{ user: string; list: Job[] }>({ user: '', list: [] });
