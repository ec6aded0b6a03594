/** Paths of files, one text of all and where each ends, with their sizes and times: 24 bytes a file besides the letters. */
export interface FileTable {
  readonly count: number;
  /** UTF-8 of all paths (relative to the source, with "/"), one after the other. */
  readonly text: Buffer;
  /** `ends[i]`: where path i ends in `text`. */
  readonly ends: Float64Array;
  /** Size of each file in bytes; -1 where it could not be measured. */
  readonly bytes: Float64Array;
  /** When each file was last changed, in milliseconds since 1970. */
  readonly mtimeMs: Float64Array;
}

/** The path of file `index`, relative to the source. */
export function pathAt(files: FileTable, index: number): string {
  return files.text.toString('utf8', index === 0 ? 0 : files.ends[index - 1]!, files.ends[index]!);
}

/** Sorts strings by code point: JavaScript's own order is by UTF-16 unit, which differs where surrogates occur. */
export function sortByCodePoint(strings: string[]): string[] {
  return strings.some((string) => SURROGATE.test(string)) ? strings.sort(compareCodePoints) : strings.sort();
}

/** Sorted strings without the ones that come again. */
export function withoutRepeats(sorted: string[]): string[] {
  return sorted.filter((path, i) => i === 0 || path !== sorted[i - 1]);
}

/** Compares any two of these strings by code point, as fast as they allow. */
export function codePointOrderOf(strings: readonly string[]): (a: string, b: string) => number {
  if (strings.some((string) => SURROGATE.test(string))) return compareCodePoints;
  return (a, b) => (a < b ? -1 : a > b ? 1 : 0);
}

const SURROGATE = /[\ud800-\udfff]/;

/** Below 0 where `a` comes first by code point, above 0 where `b` does. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const unitA = a.charCodeAt(i);
    const unitB = b.charCodeAt(i);
    if (unitA !== unitB) return codePointRank(unitA) - codePointRank(unitB);
  }
  return a.length - b.length;
}

/** A surrogate stands for a code point above every other unit. */
function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
