// Live values: a statement that runs again every two seconds while the page is visible. One poll is never in flight twice.
import { objects, type Row } from './api';
import { sql } from './session.svelte';

const EVERY_MS = 2000;
const STALE_MS = 3000;

export class Poll {
  rows = $state.raw<Row[] | null>(null);
  error = $state('');
  stale = $state(false);
  stmt = $derived.by(() => this.make());
  #at = 0;

  /** Must be called while a component is set up; ends with it. */
  constructor(private readonly make: () => string, pause: () => number = () => EVERY_MS) {
    $effect(() => {
      const { stmt } = this;
      const every = pause();
      const abort = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      let running = false;
      const run = async () => {
        clearTimeout(timer);
        if (running) return;
        if (!document.hidden) {
          running = true;
          await this.#once(stmt, abort.signal);
          running = false;
        }
        if (!abort.signal.aborted && !document.hidden) timer = setTimeout(run, every);
      };
      const watch = setInterval(() => {
        this.stale = this.rows !== null && Date.now() - this.#at > every - EVERY_MS + STALE_MS;
      }, 500);
      const wake = () => void run();
      document.addEventListener('visibilitychange', wake);
      void run();
      return () => {
        abort.abort();
        clearTimeout(timer);
        clearInterval(watch);
        document.removeEventListener('visibilitychange', wake);
      };
    });
  }

  async #once(stmt: string, signal: AbortSignal): Promise<void> {
    try {
      const rows = objects(await sql(stmt, { signal }));
      if (signal.aborted) return;
      this.rows = rows;
      this.error = '';
      this.#at = Date.now();
      this.stale = false;
    } catch (error) {
      if (!signal.aborted) this.error = error instanceof Error ? error.message : String(error);
    }
  }
}
