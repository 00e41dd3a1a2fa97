// Grants as SHOW GRANTS and SHOW ROLES have them, and the question whether they allow something. The rules are those of the server's
// documentation of privileges; the server itself decides by its own.
import type { Row } from './api';
import { literal, name as quoted } from './quote';

export const PRIVILEGES = ['SELECT', 'LOAD', 'CREATE', 'ALTER', 'DROP', 'SHOW_VIEW', 'GRANT', 'USAGE', 'ADMIN', 'NODE'] as const;
export type Privilege = (typeof PRIVILEGES)[number];
/** `on` is `*.*`, `db.*`, `db.table` or, of USAGE, `RESOURCE name`. */
export type Grant = { privilege: string; on: string; columns: string[] };
export type Holder = { name: string; comment: string; roles: string[]; users: string[]; grants: Grant[]; password: string };
export type Verdict = { allowed: 'yes' | 'no' | 'partly'; because: string[]; missing: string };

const CATALOG = 'internal.';
const SYSTEM = ['information_schema', 'mysql'];
const INTERNAL = '__internal_schema';

const upper = (privilege: string) => privilege.trim().replace(/_priv$/i, '').toUpperCase();
const split = (value: unknown, by: string | RegExp) => (value === null || value === undefined ? [] : String(value).split(by)).map((part) => part.trim()).filter(Boolean);

function grantsOf(row: Row): Grant[] {
  const list: Grant[] = split(row.GLOBALPRIVS, ',').map((privilege) => ({ privilege: upper(privilege), on: '*.*', columns: [] }));
  const scoped = (column: string, on: (name: string) => string) => {
    for (const part of split(row[column], ';')) {
      const at = part.lastIndexOf(': ');
      const scope = on(part.slice(0, at));
      const columns = /^(\w+)\((.*)\)$/.exec(part.slice(at + 2));
      if (columns) add(list, upper(columns[1]!), scope, columns[2]!.split(',').map((name) => name.trim()));
      else for (const privilege of part.slice(at + 2).split(',')) list.push({ privilege: upper(privilege), on: scope, columns: [] });
    }
  };
  const bare = (name: string) => (name.startsWith(CATALOG) ? name.slice(CATALOG.length) : name);
  scoped('CATALOGPRIVS', () => '*.*');
  scoped('DATABASEPRIVS', (name) => `${bare(name)}.*`);
  scoped('TABLEPRIVS', bare);
  scoped('COLPRIVS', bare);
  scoped('RESOURCEPRIVS', (name) => `RESOURCE ${name}`);
  return list;
}

function add(list: Grant[], privilege: string, on: string, columns: string[]): void {
  const known = list.find((grant) => grant.privilege === privilege && grant.on === on && grant.columns.length);
  if (known) known.columns.push(...columns);
  else list.push({ privilege, on, columns });
}

/** Everybody reads these two, so that they are no grants of a user. */
const isOfEverybody = (grant: Grant) => grant.privilege === 'SELECT' && SYSTEM.includes(grant.on.replace(/\.\*$/, ''));

export function holder(row: Row): Holder {
  return {
    name: String(row.USERIDENTITY ?? row.NAME), comment: String(row.COMMENT ?? ''), roles: split(row.ROLES, ',').map((role) => role.replace(/^'(.*)'$/, '$1')),
    users: split(row.USERS, /,\s*(?=')/), password: String(row.PASSWORD ?? ''), grants: grantsOf(row).filter((grant) => !isOfEverybody(grant)),
  };
}

export function words(grant: Grant): string {
  const what = `${grant.privilege}_PRIV${grant.columns.length ? `(${grant.columns.join(', ')})` : ''}`;
  return `${what} ON ${grant.on.startsWith('RESOURCE ') ? `RESOURCE '${grant.on.slice(9)}'` : grant.on}`;
}

/** The name of a user as the server shows it, `'name'@'host'`, for a statement. */
export function identity(user: string): string {
  const parts = /^'([\s\S]*)'@'([\s\S]*)'$/.exec(user);
  return parts ? `${literal(parts[1]!)}@${literal(parts[2]!)}` : literal(user);
}

function grantStatement(privilege: string, on: string, user: string): string {
  const part = (name: string) => (/^(\w+|\*)$/.test(name) ? name : quoted(name));
  const dot = on.indexOf('.');
  const object = on.startsWith('RESOURCE ') ? `RESOURCE ${literal(on.slice(9))}` : `${part(on.slice(0, dot))}.${part(on.slice(dot + 1))}`;
  return `GRANT ${privilege}_PRIV ON ${object} TO ${identity(user)}`;
}

/** Where a user has a grant from: its roles as far as they are known. */
function source(user: Holder, grant: Grant, roles: Holder[] | null): string {
  if (!user.roles.length) return 'granted to the user';
  if (roles === null) return `granted to the user or to one of its roles (${user.roles.join(', ')})`;
  const from = user.roles.filter((name) => roles.find((role) => role.name === name)?.grants.some((other) => other.privilege === grant.privilege && other.on === grant.on));
  return from.length ? `through role ${from.join(', ')}` : 'granted to the user';
}

/** May `user` do what `privilege` allows on `object`: `*`, a database, a table `db.table`, or the name of a resource? */
export function may(user: Holder, privilege: Privilege, object: string, roles: Holder[] | null): Verdict {
  const isServer = object === '' || object === '*' || object === '*.*';
  const dot = object.indexOf('.');
  const db = isServer || privilege === 'USAGE' ? '' : dot < 0 ? object : object.slice(0, dot);
  const table = dot < 0 ? '' : object.slice(dot + 1).replace(/^\*$/, '');
  const on = privilege === 'ADMIN' || privilege === 'NODE' || isServer ? '*.*' : privilege === 'USAGE' ? `RESOURCE ${object}` : table ? `${db}.${table}` : `${db}.*`;
  const statement = grantStatement(privilege, on, user.name);
  const give = (found: Grant[], allowed: 'yes' | 'partly' = 'yes'): Verdict => ({ allowed, because: found.map((grant) => `${words(grant)}, ${source(user, grant, roles)}`), missing: allowed === 'partly' ? statement : '' });
  const held = (privileges: string[], scopes: string[]) => user.grants.filter((grant) => privileges.includes(grant.privilege) && scopes.includes(grant.on) && !grant.columns.length);
  const never = (why: string): Verdict => ({ allowed: 'no', because: [why], missing: '' });
  const missing: Verdict = { allowed: 'no', because: [], missing: statement };

  const admin = held(['ADMIN', 'NODE'], ['*.*']);
  if (privilege === 'NODE') return held(['NODE'], ['*.*']).length ? give(held(['NODE'], ['*.*'])) : never('NODE_PRIV is not granted: only the role operator has it.');
  if (db === INTERNAL) {
    if (['LOAD', 'CREATE', 'ALTER', 'DROP'].includes(privilege)) return never(`Nobody changes the tables of ${INTERNAL}.`);
    if (admin.length) return give(admin);
    const named = privilege === 'SELECT' ? held(['SELECT'], [`${db}.*`, ...(table ? [`${db}.${table}`] : [])]) : [];
    return named.length ? give(named) : missing;
  }
  if (admin.length) return give(admin);
  if (privilege === 'SELECT' && SYSTEM.includes(db)) return { allowed: 'yes', because: ['Everybody may read it, and sees there what they may see.'], missing: '' };
  if (privilege === 'ADMIN') return missing;
  const scopes = privilege === 'USAGE' ? ['*.*', 'RESOURCE %', on] : ['*.*', ...(db ? [`${db}.*`] : []), ...(table ? [on] : [])];
  const found = held(privilege === 'SHOW_VIEW' ? ['SHOW_VIEW', 'CREATE', 'ALTER', 'DROP'] : [privilege], scopes);
  if (found.length) return give(found);
  const columns = privilege === 'SELECT' && table ? user.grants.filter((grant) => grant.privilege === 'SELECT' && grant.on === on && grant.columns.length) : [];
  return columns.length ? give(columns, 'partly') : missing;
}
