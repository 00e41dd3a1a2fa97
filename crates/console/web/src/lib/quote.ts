// Literals and names for statements. Every value that comes from the server or the URL passes through here.
export function literal(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

export function name(value: string): string {
  return `\`${value.replaceAll('`', '``')}\``;
}
