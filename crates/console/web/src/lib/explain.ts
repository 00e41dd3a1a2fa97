// The lines of EXPLAIN as a tree: two more blanks at the beginning of a line make it a child of the one above.
import type { Answer } from './api';

export type Step = { name: string; detail: string; metrics: [string, string][]; children: Step[] };

export function isPlan(answer: Answer): boolean {
  return answer.columns.length === 1 && answer.columns[0]!.name === 'Explain String';
}

export function textOfPlan(answer: Answer): string {
  return answer.rows.map((row) => String(row[0] ?? '')).join('\n');
}

export function planTree(text: string): Step[] {
  const roots: Step[] = [];
  const open: { indent: number; step: Step }[] = [];
  for (const line of text.split('\n')) {
    const words = line.trim();
    if (!words) continue;
    const indent = line.length - line.trimStart().length;
    while (open.length && open[open.length - 1]!.indent >= indent) open.pop();
    const ran = /^(.*?)  \[(\d+) rows?, ([\d.]+ ms)\]$/.exec(words);
    const parts = /^(.*?)(?:, )?metrics=\[(.*)\]$/.exec(words);
    const head = (ran ?? parts)?.[1] ?? words;
    const at = head.indexOf(': ');
    const step: Step = {
      name: at < 0 ? head : head.slice(0, at), detail: at < 0 ? '' : head.slice(at + 2),
      metrics: ran ? [['rows', ran[2]!], ['time', ran[3]!]] : (parts?.[2] ?? '').split(/, (?=\w+=)/).filter(Boolean).map((metric) => [metric.slice(0, metric.indexOf('=')), metric.slice(metric.indexOf('=') + 1)]),
      children: [],
    };
    (open[open.length - 1]?.step.children ?? roots).push(step);
    open.push({ indent, step });
  }
  return roots;
}
