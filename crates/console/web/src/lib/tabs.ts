// The tabs of the SQL page, by user, in localStorage. A statement that may hold a secret is not stored.
import { secret } from './history';

export type Tab = { id: string; stmt: string; db: string };

const MOST = 20;
const STMT_MOST = 100_000;
const key = (user: string) => `tributary.tabs.${user}`;

export function loadTabs(user: string): Tab[] {
  try {
    const list = JSON.parse(localStorage.getItem(key(user)) ?? '[]') as Tab[];
    const good = list.filter((tab) => typeof tab?.id === 'string' && /^\d+$/.test(tab.id) && typeof tab.stmt === 'string' && typeof tab.db === 'string');
    if (good.length) return good.slice(0, MOST);
  } catch {
    // As if there were none.
  }
  return [{ id: '1', stmt: '', db: '' }];
}

export function saveTabs(user: string, tabs: Tab[]): void {
  localStorage.setItem(key(user), JSON.stringify(tabs.map((tab) => ({ ...tab, stmt: secret(tab.stmt) || tab.stmt.length > STMT_MOST ? '' : tab.stmt }))));
}

export function nextId(tabs: Tab[]): string {
  return String(Math.max(0, ...tabs.map((tab) => Number(tab.id))) + 1);
}

export const isFull = (tabs: Tab[]) => tabs.length >= MOST;

export function title(tab: Tab): string {
  const text = secret(tab.stmt) ? '' : tab.stmt.trim().replace(/\s+/g, ' ');
  return text.length > 26 ? `${text.slice(0, 25)}…` : text || `Tab ${tab.id}`;
}
