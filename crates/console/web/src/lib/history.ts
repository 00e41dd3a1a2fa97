// Statements that a user ran, newest first, in localStorage; never their results. Statements with secrets are left out.
const MOST = 100;
const SECRETS = /\b(IDENTIFIED|PASSWORD|TOKEN|SECRET|ACCESS_KEY|CREDENTIAL)/i;

/** Whether a statement may hold a password, a token or a key: such statements are neither stored nor put into the URL. */
export function secret(stmt: string): boolean {
  return SECRETS.test(stmt);
}

const key = (user: string) => `tributary.history.${user}`;

export function statements(user: string): string[] {
  try {
    const list = JSON.parse(localStorage.getItem(key(user)) ?? '[]');
    return Array.isArray(list) ? list.filter((entry) => typeof entry === 'string') : [];
  } catch {
    return [];
  }
}

export function remember(user: string, stmt: string): string[] {
  if (secret(stmt) || stmt.length > 10_000) return statements(user);
  const list = [stmt, ...statements(user).filter((entry) => entry !== stmt)].slice(0, MOST);
  localStorage.setItem(key(user), JSON.stringify(list));
  return list;
}
