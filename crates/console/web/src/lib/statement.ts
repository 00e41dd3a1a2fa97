// Finds the statement at a position of a text: `;` ends one, outside of quotes and comments.
export function statementAt(text: string, position: number): string {
  let start = 0;
  let at = 0;
  while (at < text.length) {
    const character = text[at]!;
    if (character === "'" || character === '"' || character === '`') at = skipQuoted(text, at);
    else if (character === '#' || /^--(\s|$)/.test(text.slice(at, at + 3))) at = after(text, '\n', at);
    else if (text.startsWith('/*', at)) at = after(text, '*/', at + 2);
    else if (character === ';') {
      if (position <= at || !text.slice(at + 1).trim()) return text.slice(start, at).trim();
      at += 1;
      start = at;
    } else at += 1;
  }
  return text.slice(start).trim();
}

function after(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from);
  return found < 0 ? text.length : found + end.length;
}

function skipQuoted(text: string, from: number): number {
  const quote = text[from]!;
  let at = from + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === '\\' && quote !== '`' ? 2 : 1;
  return at + 1;
}
