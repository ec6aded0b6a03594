/**
 * Many paths in little memory, readable in place by worker threads: one text of all paths, where each ends, and how long
 * each file is and when it was changed. 24 bytes a file besides the letters of its path.
 */
export interface FileTable {
  readonly count: number;
  /** UTF-8 of all paths (relative to the source, with "/"), one after the other, in shared memory. */
  readonly text: Buffer;
  /** `ends[i]`: where path i ends in `text`. */
  readonly ends: Float64Array;
  /** Size of each file in bytes; 0 until it was measured, -1 where it could not be. */
  readonly bytes: Float64Array;
  /** When each file was last changed, in milliseconds since 1970; 0 until it was measured. */
  readonly mtimeMs: Float64Array;
}

/** Builds the table of `paths`, in their order. */
export function createFileTable(paths: Iterable<string>): FileTable {
  const table = new FileTableBuilder();
  for (const path of paths) table.add(path);
  return table.finish();
}

/** Takes paths one by one, so that no string of them need be kept. */
export class FileTableBuilder {
  #text = Buffer.allocUnsafe(1 << 16);
  #ends = new Float64Array(1 << 10);
  #textBytes = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(path: string): void {
    const most = this.#textBytes + path.length * MAX_UTF8_BYTES;
    if (most > this.#text.length) this.#text = Buffer.concat([this.#text], Math.max(most, 2 * this.#text.length));
    if (this.#count === this.#ends.length) this.#ends = longer(this.#ends);
    this.#textBytes += this.#text.write(path, this.#textBytes);
    this.#ends[this.#count++] = this.#textBytes;
  }

  finish(): FileTable {
    const text = Buffer.from(new SharedArrayBuffer(this.#textBytes));
    this.#text.copy(text);
    const ends = new Float64Array(new SharedArrayBuffer(this.#count * 8));
    ends.set(this.#ends.subarray(0, this.#count));
    const numbers = () => new Float64Array(new SharedArrayBuffer(this.#count * 8));
    return { count: this.#count, text, ends, bytes: numbers(), mtimeMs: numbers() };
  }
}

/** Of one UTF-16 unit. */
const MAX_UTF8_BYTES = 3;

function longer(values: Float64Array): Float64Array<ArrayBuffer> {
  const copy = new Float64Array(2 * values.length);
  copy.set(values);
  return copy;
}

/** The table as it arrives in another thread, where a Buffer has become a plain array of bytes. */
export function receiveFileTable(files: FileTable): FileTable {
  const { buffer, byteOffset, byteLength } = files.text;
  return { ...files, text: Buffer.from(buffer, byteOffset, byteLength) };
}

/** The path of file `index`, relative to the source. */
export function pathAt(files: FileTable, index: number): string {
  return files.text.toString('utf8', index === 0 ? 0 : files.ends[index - 1]!, files.ends[index]!);
}

/** The file with this path in a table that is sorted by path; -1 where there is none. */
export function findPath(files: FileTable, path: string): number {
  // The order of UTF-8 is that of code points.
  const wanted = Buffer.from(path);
  let from = 0;
  let to = files.count;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const start = middle === 0 ? 0 : files.ends[middle - 1]!;
    const order = files.text.compare(wanted, 0, wanted.length, start, files.ends[middle]!);
    if (order === 0) return middle;
    if (order < 0) from = middle + 1;
    else to = middle;
  }
  return -1;
}

/** Length of the path of file `index` in UTF-8. */
export function pathBytes(files: FileTable, index: number): number {
  return files.ends[index]! - (index === 0 ? 0 : files.ends[index - 1]!);
}

/** Sorts strings by code point: JavaScript's own order is by UTF-16 unit, which differs where surrogates occur. */
export function sortByCodePoint(strings: string[]): string[] {
  return strings.some((string) => SURROGATE.test(string)) ? strings.sort(compareCodePoints) : strings.sort();
}

/** Sorted strings without the ones that come again. */
export function withoutRepeats(sorted: string[]): string[] {
  return sorted.filter((path, i) => i === 0 || path !== sorted[i - 1]);
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
