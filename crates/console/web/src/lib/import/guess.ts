// Format, separator, header and types of a file, from its first bytes. A guess is only offered: the page lets the user change all of it.
import { name } from '../quote';
import { begin, fields, type Shape, starts } from './rows';

export const HEAD_BYTES = 1 << 20;
const PREVIEW_ROWS = 100;
/** Rows of the head that types are guessed from. */
const GUESS_ROWS = 5000;
const SEPARATORS = [',', ';', '\t', '|', '\u0001'];

export type Format = Shape['format'] | 'parquet';
export type Field = { name: string; type: string };
/** The first rows as they will be loaded. */
export type Sample = {
  fields: Field[];
  rows: { raw: string; values: (string | null)[] }[];
  /** Bytes of the file before its first row of data. */
  skip: number;
};

/** Why the file can't be imported as it is; empty if it can. */
export function unfit(head: Uint8Array): string {
  const starts = (...bytes: number[]) => bytes.every((byte, at) => head[at] === byte);
  if (starts(0x1f, 0x8b) || starts(0x28, 0xb5, 0x2f, 0xfd) || starts(0x50, 0x4b, 3, 4)) return 'The file is compressed. Unpack it first.';
  if (starts(0xff, 0xfe) || starts(0xfe, 0xff)) return 'The file is UTF-16. Convert it to UTF-8 first.';
  return '';
}

export function guessFormat(head: Uint8Array, file: string): Format {
  if (head[0] === 0x50 && head[1] === 0x41 && head[2] === 0x52 && head[3] === 0x31) return 'parquet';
  const text = new TextDecoder().decode(head.subarray(0, 4096)).replace(/^\uFEFF/, '').trimStart();
  if (text.startsWith('[') && !/\.(csv|tsv)$/i.test(file)) return 'array';
  if (text.startsWith('{')) return 'lines';
  return 'csv';
}

/** The separator that gives most rows the same number of fields, and the most of them. */
export function guessSeparator(head: Uint8Array, quote: string): string {
  let best = ',';
  let most = 0;
  for (const separator of SEPARATORS) {
    const shape: Shape = { format: 'csv', separator, quote };
    const counts = read(head, shape, begin(head, shape), 50, head.length < HEAD_BYTES).map((line) => fields(line, shape).length);
    const usual = counts[0] ?? 1;
    const score = usual < 2 ? 0 : (counts.filter((count) => count === usual).length / counts.length) * 100 + Math.min(usual, 50) / 10;
    if (score > most) [best, most] = [separator, score];
  }
  return best;
}

/** Whether the first row names the fields: its values are different, none is empty or a number, and the rows below have other types. */
export function guessHeader(head: Uint8Array, shape: Shape): boolean {
  const [first, ...rest] = read(head, shape, begin(head, shape), 51, head.length < HEAD_BYTES).map((line) => fields(line, shape));
  if (!first || first.some((value) => !value || typeOf([value]) !== 'STRING') || new Set(first).size < first.length) return false;
  if (first.every((value) => /^[\p{L}_][\p{L}\d_ .-]*$/u.test(value!))) return true;
  return first.some((_, at) => rest.length > 0 && typeOf(rest.map((row) => row[at] ?? null)) !== 'STRING');
}

function read(head: Uint8Array, shape: Shape, from: number, most: number, whole: boolean): string[] {
  const list = starts(head, shape, from, most, whole);
  const decoder = new TextDecoder();
  return list.slice(1).map((end, at) => {
    const text = decoder.decode(head.subarray(list[at], end));
    return shape.format === 'array' ? text.slice(0, -1).trim() : text.replace(/\r?\n$/, '');
  });
}

/** Bytes of a file before its first row of data. */
export function skipped(head: Uint8Array, whole: boolean, shape: Shape, header: boolean): number {
  const from = begin(head, shape);
  return header && shape.format === 'csv' ? (starts(head, shape, from, 1, whole)[1] ?? from) : from;
}

export function sample(head: Uint8Array, whole: boolean, shape: Shape, header: boolean): Sample {
  const from = begin(head, shape);
  if (shape.format !== 'csv') {
    const lines = read(head, shape, from, GUESS_ROWS, whole).filter((line) => line.trim() !== '');
    const parsed = lines.map((raw) => ({ raw, values: object(raw) }));
    const keys = [...new Set(parsed.flatMap(({ values }) => [...(values?.keys() ?? [])]))];
    const rows = parsed.map(({ raw, values }) => ({ raw, values: keys.map((key) => values?.get(key) ?? null) }));
    return { fields: typed(keys, rows), rows: rows.slice(0, PREVIEW_ROWS), skip: from };
  }
  const skip = skipped(head, whole, shape, header);
  const names = header ? fields(new TextDecoder().decode(head.subarray(from, skip)), shape).map((value) => (value ?? '').trim()) : [];
  const rows = read(head, shape, skip, GUESS_ROWS, whole).filter((line) => line !== '').map((raw) => ({ raw, values: fields(raw, shape) }));
  const width = names.length || rows.reduce((most, { values }) => Math.max(most, values.length), 0);
  return { fields: typed(Array.from({ length: width }, (_, at) => names[at] || `c${at + 1}`), rows), rows: rows.slice(0, PREVIEW_ROWS), skip };
}

/** Keys and values of an object; nested values as JSON. Numbers stay as they are written. */
function object(text: string): Map<string, string | null> | null {
  try {
    const value = JSON.parse(text, (_, inner, context?: { source?: string }) => (typeof inner === 'number' ? new Literal(context?.source ?? String(inner)) : inner));
    if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Literal) return null;
    return new Map(Object.entries(value).map(([key, inner]) => [key, show(inner)]));
  } catch {
    return null;
  }
}

class Literal {
  constructor(readonly source: string) {}
  toJSON(): unknown {
    return Number(this.source);
  }
}

function show(value: unknown): string | null {
  if (value === null) return null;
  if (value instanceof Literal) return value.source;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function typed(names: string[], rows: { values: (string | null)[] }[]): Field[] {
  return names.map((field, at) => ({ name: field, type: typeOf(rows.map(({ values }) => values[at] ?? null)) }));
}

/** The narrowest type that holds all values. Texts have no length, since later rows may be longer. */
export function typeOf(values: (string | null)[]): string {
  const known = values.filter((value): value is string => value !== null && value !== '');
  const all = (pattern: RegExp) => known.every((value) => pattern.test(value));
  const longest = (length: (value: string) => number) => known.reduce((most, value) => Math.max(most, length(value)), 0);
  if (!known.length) return 'STRING';
  if (all(/^(true|false)$/i)) return 'BOOLEAN';
  if (all(/^-?(0|[1-9]\d{0,37})$/)) return known.every((value) => BigInt.asIntN(64, BigInt(value)) === BigInt(value)) ? 'BIGINT' : 'LARGEINT';
  if (all(/^-?(0|[1-9]\d*)?(\.\d+)?$/)) {
    const digits = (part: number) => longest((value) => (value.replace('-', '').split('.')[part] ?? '').length);
    const scale = Math.min(Math.max(digits(1), 2), 18);
    return digits(0) + digits(1) > 30 ? 'DOUBLE' : `DECIMAL(${Math.min(38, Math.max(18, digits(0) + 4 + scale))}, ${scale})`;
  }
  if (all(/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i) && !known.some((value) => /^0\d/.test(value))) return 'DOUBLE';
  if (all(/^\d{4}-\d\d-\d\d$/)) return 'DATE';
  if (all(/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/)) {
    const fraction = Math.min(6, longest((value) => /\.(\d+)/.exec(value)?.[1]!.length ?? 0));
    return fraction ? `DATETIME(${fraction})` : 'DATETIME';
  }
  return all(/^[[{]/) && known.every(isJson) ? 'JSON' : 'STRING';
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Makes a field's name one that the server takes for a column. */
export function columnName(field: string): string {
  return field.trim().replace(/[^.\w+\-/?@#$%^&*:\p{L}]+/gu, '_').replace(/^[^_@a-zA-Z0-9\p{L}]/u, '_') || 'c';
}

export function createTable(db: string, table: string, list: Field[]): string {
  const columns = list.map((field) => `  ${name(columnName(field.name))} ${field.type}`);
  return `CREATE TABLE ${name(db)}.${name(table)} (\n${columns.join(',\n')}\n)`;
}
