// Which columns of a result a chart can show, and how.
import type { Answer } from './api';

export type Column = { at: number; name: string; kind: 'number' | 'time' | 'text' };

const TIME = /^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$/;

/** Seconds since 1970 of a date or a time, in the zone of the browser. */
export function seconds(value: unknown): number {
  const text = String(value);
  return Date.parse(text.length > 10 ? text.replace(' ', 'T') : `${text}T00:00`) / 1000;
}

export function columns(answer: Answer): Column[] {
  return answer.columns.map(({ name }, at) => {
    const known = answer.rows.map((row) => row[at]).filter((value) => value !== null && value !== undefined);
    const all = (test: (value: unknown) => boolean) => known.length > 0 && known.every(test);
    if (all((value) => typeof value === 'number' || typeof value === 'boolean' || (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)))) return { at, name, kind: 'number' };
    return { at, name, kind: all((value) => TIME.test(String(value))) ? 'time' : 'text' };
  });
}
