// Results as files: CSV and JSON, made in the browser from the rows that are there.
import type { Answer } from './api';

export function csv(answer: Answer): string {
  const field = (value: unknown) => {
    if (value === null || value === undefined) return '';
    const text = String(value);
    return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = [answer.columns.map((column) => column.name), ...answer.rows];
  return rows.map((row) => row.map(field).join(',')).join('\r\n') + '\r\n';
}

export function json(answer: Answer): string {
  const rows = answer.rows.map((row) => Object.fromEntries(answer.columns.map((column, at) => [column.name, row[at]])));
  return JSON.stringify(rows, null, 1) + '\n';
}

export function save(file: string, type: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.download = file;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
