/** Paths of files, stored as one text with end offsets, and their sizes and times: 24 bytes per file plus the text. */
export interface FileTable {
  readonly count: number;
  /** UTF-8 of all paths, concatenated. Paths are relative to the source, with "/". */
  readonly text: Buffer;
  /** `ends[i]`: offset in `text` where path i ends. */
  readonly ends: Float64Array;
  /** Size of each file in bytes; -1 if it could not be measured. */
  readonly bytes: Float64Array;
  /** Modification time of each file, in milliseconds since 1970. */
  readonly mtimeMs: Float64Array;
}

/** Returns the path of file `index`, relative to the source. */
export function pathAt(files: FileTable, index: number): string {
  return files.text.toString('utf8', index === 0 ? 0 : files.ends[index - 1]!, files.ends[index]!);
}

/** Sorts strings by code point. JavaScript compares UTF-16 units, which differs if there are surrogates. */
export function sortByCodePoint(strings: string[]): string[] {
  return strings.some((string) => SURROGATE.test(string)) ? strings.sort(compareCodePoints) : strings.sort();
}

/** Returns sorted strings without duplicates. */
export function withoutRepeats(sorted: string[]): string[] {
  return sorted.filter((path, i) => i === 0 || path !== sorted[i - 1]);
}

/** Returns a comparison by code point for any two of these strings, as fast as their characters allow. */
export function codePointOrderOf(strings: readonly string[]): (a: string, b: string) => number {
  if (strings.some((string) => SURROGATE.test(string))) return compareCodePoints;
  return (a, b) => (a < b ? -1 : a > b ? 1 : 0);
}

const SURROGATE = /[\ud800-\udfff]/;

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
