/**
 * A table keyed by names from data, as an object without a prototype: a field called `constructor` or `__proto__` is an
 * ordinary key, and a name that was never set has no value.
 */
export function nameTable<T>(entries: Iterable<readonly [string, T]> = []): Record<string, T> {
  const table: Record<string, T> = Object.create(null);
  for (const [name, value] of entries) table[name] = value;
  return table;
}
