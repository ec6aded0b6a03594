const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Sorts class names that are all numbers by value: 2 comes before 10. Returns null if any name is not a number. */
export function sortedByValue(names: readonly string[]): string[] | null {
  if (names.length === 0 || !names.every((name) => NUMBER.test(name))) return null;
  return names.toSorted((a, b) => Number(a) - Number(b) || (a < b ? -1 : 1));
}
