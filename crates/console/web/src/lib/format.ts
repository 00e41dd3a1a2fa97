// Numbers, sizes, durations and times as people read them.
const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export type Value = string | number | boolean | null;

export function count(value: Value): string {
  if (value === null || value === undefined) return '–';
  const number = Number(value);
  return Number.isSafeInteger(number) ? whole.format(number) : String(value);
}

export function rows(value: number): string {
  return `${count(value)} ${value === 1 ? 'row' : 'rows'}`;
}

export function compact(value: number): string {
  return short.format(value);
}

export function bytes(value: Value): string {
  if (value === null || value === undefined) return '–';
  let number = Number(value);
  let unit = 0;
  while (number >= 1024 && unit < UNITS.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${number >= 100 || unit === 0 ? Math.round(number) : number.toFixed(1)} ${UNITS[unit]}`;
}

export function millis(value: Value): string {
  if (value === null || value === undefined) return '–';
  const number = Number(value);
  if (number < 1000) return `${Math.round(number)} ms`;
  if (number < 60_000) return `${(number / 1000).toFixed(1)} s`;
  if (number < 3_600_000) return `${Math.floor(number / 60_000)} min ${Math.floor((number % 60_000) / 1000)} s`;
  return `${Math.floor(number / 3_600_000)} h ${Math.floor((number % 3_600_000) / 60_000)} min`;
}

export function micros(value: Value): string {
  if (value === null || value === undefined) return '–';
  const number = Number(value);
  return number < 1000 ? `${number} µs` : number < 10_000 ? `${(number / 1000).toFixed(1)} ms` : millis(number / 1000);
}

/** The value as text; a dash for NULL. */
export function text(value: Value): string {
  return value === null || value === undefined ? '–' : String(value);
}
