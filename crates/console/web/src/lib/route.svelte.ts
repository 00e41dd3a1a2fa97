// The hash router: the path and the parameters behind `#` are the whole state of a page.
export type Query = Record<string, string | undefined>;

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function parse(): { path: string[]; query: URLSearchParams } {
  const hash = location.hash.replace(/^#\/?/, '');
  const at = hash.indexOf('?');
  const path = at < 0 ? hash : hash.slice(0, at);
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(at < 0 ? '' : hash.slice(at + 1)) };
}

export const route = $state(parse());

addEventListener('hashchange', () => Object.assign(route, parse()));

export function link(path: string[], query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== '') search.set(key, value);
  const tail = search.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${tail ? `?${tail}` : ''}`;
}

/** Changes parameters of the current page and keeps the others. */
export function refine(changes: Query): void {
  const query: Query = { ...Object.fromEntries(route.query), ...changes };
  history.replaceState(null, '', link(route.path, query));
  Object.assign(route, parse());
}
