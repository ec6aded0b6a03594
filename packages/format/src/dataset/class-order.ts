const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Class names that are all numbers, by their values: 2 comes before 10. Null where one is no number. */
export function sortedByValue(names: readonly string[]): string[] | null {
  if (names.length === 0 || !names.every((name) => NUMBER.test(name))) return null;
  return names.toSorted((a, b) => Number(a) - Number(b) || (a < b ? -1 : 1));
}
