/** Order of texts by code point, which is also the order of their UTF-8. JavaScript compares UTF-16 units. */

const SURROGATE = /[\ud800-\udfff]/;

/** Sorts strings by code point, in place. */
export function sortByCodePoint(strings: string[]): string[] {
  return strings.some((string) => SURROGATE.test(string)) ? strings.sort(compareCodePoints) : strings.sort();
}

/** Returns a comparison by code point for any two of these strings, as fast as their characters allow. */
export function codePointOrderOf(strings: readonly string[]): (a: string, b: string) => number {
  if (strings.some((string) => SURROGATE.test(string))) return compareCodePoints;
  return (a, b) => (a < b ? -1 : a > b ? 1 : 0);
}

/** Negative if `a` is first by code point, positive if `b` is. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const unitA = a.charCodeAt(i);
    const unitB = b.charCodeAt(i);
    if (unitA !== unitB) return codePointRank(unitA) - codePointRank(unitB);
  }
  return a.length - b.length;
}

/** A surrogate represents a code point above every other unit. */
function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
