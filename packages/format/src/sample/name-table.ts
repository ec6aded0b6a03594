/**
 * What belongs to names that come from data, as an object without a prototype: a field that is called `constructor` or
 * `__proto__` is one like any other there, and a name that nobody has put in has no value.
 */
export function nameTable<T>(entries: Iterable<readonly [string, T]> = []): Record<string, T> {
  const table: Record<string, T> = Object.create(null);
  for (const [name, value] of entries) table[name] = value;
  return table;
}
