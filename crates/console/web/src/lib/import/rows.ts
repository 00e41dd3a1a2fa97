// Where the rows of a file begin and end, in bytes. The rules of CSV are those of the server: a quote opens a field only where the field
// begins, and a doubled one is data.
export type Shape = { format: 'csv' | 'lines' | 'array'; separator: string; quote: string };

const NEWLINE = 10;
const QUOTE = 34;
const BACKSLASH = 92;
const PIECE = 1 << 20;
/** The longest row; beyond it the quote character is most likely wrong. */
const ROW_MOST = 128 << 20;

/** Tells where rows begin while the bytes of a file pass by. */
export interface Scanner {
  /** Looks at bytes from `from` on, up to the first row that begins at `least` or later. Its start, or -1 if there is none yet. */
  feed(bytes: Uint8Array, from: number, least: number): number;
}

class CsvScanner implements Scanner {
  #state = 0;
  readonly #quote: number;
  readonly #separator: number;

  constructor(shape: Shape) {
    this.#quote = shape.quote ? shape.quote.charCodeAt(0) : -1;
    this.#separator = shape.separator.charCodeAt(0);
  }

  // 0: a field begins, 1: outside of quotes, 2: inside, 3: behind a quote that may be the closing one.
  feed(bytes: Uint8Array, from: number, least: number): number {
    if (this.#quote < 0) {
      const found = bytes.indexOf(NEWLINE, Math.max(from, least - 1));
      return found < 0 ? -1 : found + 1;
    }
    const [quote, separator] = [this.#quote, this.#separator];
    let state = this.#state;
    for (let at = from; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (state === 2) {
        if (byte === quote) state = 3;
      } else if (byte === NEWLINE) {
        state = 0;
        if (at + 1 >= least) {
          this.#state = 0;
          return at + 1;
        }
      } else if (byte === separator) state = 0;
      else if (byte === quote && state !== 1) state = 2;
      else state = 1;
    }
    this.#state = state;
    return -1;
  }
}

/** Rows of an array of JSON: elements that a comma or the closing bracket ends. The start of a row is behind that byte. */
class ArrayScanner implements Scanner {
  #depth = 1;
  #string = false;
  #escaped = false;

  feed(bytes: Uint8Array, from: number, least: number): number {
    for (let at = from; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (this.#escaped) this.#escaped = false;
      else if (this.#string) {
        if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) this.#string = false;
      } else if (byte === QUOTE) this.#string = true;
      else if (byte === 91 || byte === 123) this.#depth += 1;
      else if (byte === 93 || byte === 125) {
        this.#depth -= 1;
        if (this.#depth === 0) return at + 1;
      } else if (byte === 44 && this.#depth === 1 && at + 1 >= least) return at + 1;
    }
    return -1;
  }
}

class LineScanner implements Scanner {
  feed(bytes: Uint8Array, from: number, least: number): number {
    const found = bytes.indexOf(NEWLINE, Math.max(from, least - 1));
    return found < 0 ? -1 : found + 1;
  }
}

export function scanner(shape: Shape): Scanner {
  if (shape.format === 'csv') return new CsvScanner(shape);
  return shape.format === 'lines' ? new LineScanner() : new ArrayScanner();
}

/** The position of the first row: behind a byte order mark, and in an array behind its bracket. */
export function begin(head: Uint8Array, shape: Shape): number {
  let at = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0;
  if (shape.format === 'array') {
    while (at < head.length && head[at] !== 91) at += 1;
    at += 1;
  }
  return at;
}

/** The starts of the first rows of `head`, and the end of the last complete one. The end of a whole file ends its last row, too. */
export function starts(head: Uint8Array, shape: Shape, from: number, most: number, whole: boolean): number[] {
  const scan = scanner(shape);
  const list = [from];
  while (list.length <= most) {
    const at = list[list.length - 1]!;
    const next = scan.feed(head, at, at + 1);
    if (next < 0) {
      if (whole && at < head.length && shape.format !== 'array') list.push(head.length);
      break;
    }
    list.push(next);
    if (shape.format === 'array' && head[next - 1] === 93) break;
  }
  return list;
}

/** The end of the chunk that begins at `from`: the first end of a row after `bytes` bytes, or the end of the file. Reads piece by piece. */
export async function cut(file: Blob, shape: Shape, from: number, bytes: number): Promise<number> {
  const scan = scanner(shape);
  // Without quotes a row ends at the next line end, wherever the search for it begins.
  const skips = shape.format === 'lines' || (shape.format === 'csv' && !shape.quote);
  let base = skips ? Math.min(from + bytes - 1, file.size) : from;
  while (base < file.size) {
    if (base - from > bytes + ROW_MOST) throw new Error(`The row at byte ${from} has no end within 128 MiB. Is the quote character right?`);
    const piece = new Uint8Array(await file.slice(base, base + PIECE).arrayBuffer());
    const found = scan.feed(piece, 0, from + bytes - base);
    if (found >= 0) return base + found;
    base += piece.length;
  }
  return file.size;
}

/** The fields of a row of CSV, by the rules of the server; NULL for `\N`. */
export function fields(line: string, shape: Shape): (string | null)[] {
  const { quote, separator } = shape;
  const text = line.replace(/\r?\n$/, '');
  const list: (string | null)[] = [];
  let at = 0;
  for (;;) {
    if (quote && text[at] === quote) {
      let value = '';
      let next = at + 1;
      for (;;) {
        const end = text.indexOf(quote, next);
        if (end < 0) {
          value += text.slice(next);
          next = text.length;
          break;
        }
        value += text.slice(next, end);
        next = end + 1;
        if (text[next] !== quote) break;
        value += quote;
        next += 1;
      }
      const stop = text.indexOf(separator, next);
      const end = stop < 0 ? text.length : stop;
      // Text behind the closing quote: the quotes were data.
      list.push(end > next ? text.slice(at, end) : value);
      if (stop < 0) return list;
      at = stop + 1;
    } else {
      const stop = text.indexOf(separator, at);
      const value = stop < 0 ? text.slice(at) : text.slice(at, stop);
      list.push(value === '\\N' ? null : value);
      if (stop < 0) return list;
      at = stop + 1;
    }
  }
}
