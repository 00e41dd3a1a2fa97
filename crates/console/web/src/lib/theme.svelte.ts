// The colour scheme: the system's, or the one that the user chose.
const KEY = 'tributary.theme';
export type Theme = 'auto' | 'light' | 'dark';

const stored = localStorage.getItem(KEY);
export const theme = $state({ value: (stored === 'light' || stored === 'dark' ? stored : 'auto') as Theme });

export function applyTheme(): void {
  const root = document.documentElement;
  if (theme.value === 'auto') root.removeAttribute('data-theme');
  else root.setAttribute('data-theme', theme.value);
}

export function setTheme(value: Theme): void {
  theme.value = value;
  if (value === 'auto') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, value);
  applyTheme();
}
