import { partitionPoint } from '@shardtool/base';
import { SourceError } from '../errors.js';
import { type SharedSpool, Spool, SpooledBytes, type SpoolPlace } from './spool.js';

/**
 * Of one file: its size in bytes and when it was last changed, in milliseconds since 1970, as two doubles; behind them
 * its path in UTF-8, filled up with zeros to a multiple of eight.
 */
const FACTS_BYTES = 16;
const UNIT = 8;
/** So many bytes are collected before they go to the spool. */
const BLOCK_BYTES = 1 << 20;
/** So many are read ahead from the disk. */
const WINDOW_BYTES = 1 << 18;
const MOST_UNITS = 2 ** 32 - 1;

/** Source files as other threads get them. */
export interface SharedSourceFiles {
  readonly ends: Uint32Array;
  readonly spool: SharedSpool;
}

/**
 * All files below a source, sorted by path: what a plan is made from. In memory each takes four bytes besides the
 * {@link Spool}, which goes to the disk where it becomes large.
 */
export class SourceFiles {
  /** Where the record of each file ends, in units of eight bytes. */
  readonly #ends: Uint32Array;
  readonly #spool: SharedSpool;
  readonly #bytes: SpooledBytes;
  /** Gives the memory or the file up: nothing reads the files any more then, in any thread. */
  readonly close: () => void;

  constructor({ ends, spool }: SharedSourceFiles, close = (): void => undefined) {
    this.#ends = ends;
    this.#spool = spool;
    this.#bytes = new SpooledBytes(spool);
    this.close = close;
  }

  get count(): number {
    return this.#ends.length;
  }

  share(): SharedSourceFiles {
    return { ends: this.#ends, spool: this.#spool };
  }

  /** Everything as bytes, piece by piece: files that differ in anything give other bytes. */
  *pieces(): Generator<Uint8Array> {
    const { buffer, byteOffset, byteLength } = this.#ends;
    yield new Uint8Array(buffer, byteOffset, byteLength);
    const total = startOf(this.#ends, this.count);
    for (let from = 0; from < total; from += BLOCK_BYTES)
      yield this.#bytes.span(from, Math.min(total, from + BLOCK_BYTES));
  }

  /** Sees each file as it is now, or at the latest when the reader comes to it. */
  reader(): FileReader {
    return new FileReader(this.#ends, this.#bytes);
  }

  /** Fills in the size and the time of the files from number `from` up to `to`; `facts` gives them for a path and its number. */
  fill(from: number, to: number, facts: (path: string, file: number) => FileFacts): void {
    const first = startOf(this.#ends, from);
    this.#bytes.change(first, this.#ends[to - 1]! * UNIT, (bytes) => {
      for (let file = from; file < to; file++) {
        const start = startOf(this.#ends, file) - first;
        const { bytes: size, mtimeMs } = facts(pathIn(bytes, start, this.#ends[file]! * UNIT - first), file);
        bytes.writeDoubleLE(size, start);
        bytes.writeDoubleLE(mtimeMs, start + 8);
      }
    });
  }
}

export interface FileFacts {
  /** Size in bytes; 0 until it was measured, -1 where it could not be. */
  readonly bytes: number;
  /** When the file was last changed, in milliseconds since 1970; 0 until it was measured. */
  readonly mtimeMs: number;
}

/** Reads source files by their numbers; quickest in ascending order. */
export class FileReader {
  readonly #ends: Uint32Array;
  readonly #bytes: SpooledBytes;
  /** What is at hand of all bytes: those from `#from` up to `#to`. */
  #window: Buffer;
  #from = 0;
  #to: number;

  constructor(ends: Uint32Array, bytes: SpooledBytes) {
    this.#ends = ends;
    this.#bytes = bytes;
    this.#window = bytes.memory ?? Buffer.allocUnsafe(0);
    this.#to = this.#window.length;
  }

  /** Relative to the source, with "/". */
  path(file: number): string {
    const start = this.#hold(file);
    return pathIn(this.#window, start, this.#ends[file]! * UNIT - this.#from);
  }

  /** Length of the path in UTF-8. */
  pathBytes(file: number): number {
    const start = this.#hold(file);
    return pathEnd(this.#window, this.#ends[file]! * UNIT - this.#from) - start - FACTS_BYTES;
  }

  /** See {@link FileFacts.bytes}. */
  bytes(file: number): number {
    const start = this.#hold(file);
    return this.#window.readDoubleLE(start);
  }

  /** See {@link FileFacts.mtimeMs}. */
  mtimeMs(file: number): number {
    const start = this.#hold(file);
    return this.#window.readDoubleLE(start + 8);
  }

  /** Copies the path's UTF-8 to `target`, from `at` on. */
  copyPath(file: number, target: Buffer, at: number): void {
    const start = this.#hold(file);
    this.#window.copy(target, at, start + FACTS_BYTES, pathEnd(this.#window, this.#ends[file]! * UNIT - this.#from));
  }

  get count(): number {
    return this.#ends.length;
  }

  /** The file with this path; -1 where there is none. */
  find(path: string): number {
    const file = this.firstFrom(path);
    return file < this.count && this.path(file) === path ? file : -1;
  }

  /** The first file whose path is not before this one; {@link count} where there is none. */
  firstFrom(path: string): number {
    // The order of UTF-8 is that of code points.
    const wanted = Buffer.from(path);
    return partitionPoint(0, this.count, (file) => this.#compare(file, wanted) < 0);
  }

  /** Below 0 where the path of a file comes before `wanted`, above 0 where it comes after it. */
  #compare(file: number, wanted: Buffer): number {
    const start = this.#hold(file) + FACTS_BYTES;
    const end = pathEnd(this.#window, this.#ends[file]! * UNIT - this.#from);
    return this.#window.compare(wanted, 0, wanted.length, start, end);
  }

  /** Has the record of a file in the window, and says where it begins there. */
  #hold(file: number): number {
    const start = startOf(this.#ends, file);
    const end = this.#ends[file]! * UNIT;
    if (start >= this.#from && end <= this.#to) return start - this.#from;
    // Who reads on reads ahead; who looks for one file gets no more.
    const isNext = start >= this.#from && start <= this.#to;
    const length = Math.max(end - start, isNext ? WINDOW_BYTES : 0);
    if (this.#window.length < length) this.#window = Buffer.allocUnsafe(Math.max(length, WINDOW_BYTES));
    this.#from = start;
    this.#to = start + this.#bytes.read(this.#window.subarray(0, length), start);
    return 0;
  }
}

function startOf(ends: Uint32Array, file: number): number {
  return file === 0 ? 0 : ends[file - 1]! * UNIT;
}

function pathIn(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('utf8', start + FACTS_BYTES, pathEnd(bytes, end));
}

function pathEnd(bytes: Buffer, end: number): number {
  let last = end;
  while (bytes[last - 1] === 0) last--;
  return last;
}

/** The files with these paths, which are sorted. */
export function sourceFilesOf(paths: Iterable<string>, place: SpoolPlace): SourceFiles {
  const files = new SourceFilesBuilder(place);
  try {
    for (const path of paths) files.add(path);
    return files.finish();
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Takes paths one by one, sorted, so that no string of them need be kept. */
export class SourceFilesBuilder {
  readonly #spool: Spool;
  #ends = new Uint32Array(1 << 10);
  #count = 0;
  #block = Buffer.alloc(BLOCK_BYTES);
  #used = 0;

  constructor(place: SpoolPlace) {
    this.#spool = new Spool(place);
  }

  get count(): number {
    return this.#count;
  }

  /** `facts` where they are known already. */
  add(path: string, facts?: FileFacts): void {
    const most = FACTS_BYTES + path.length * MAX_UTF8_BYTES + UNIT;
    if (this.#used + most > this.#block.length) this.#flush(most);
    if (this.#count === this.#ends.length) this.#ends = longer(this.#ends);
    const written = this.#block.write(path, this.#used + FACTS_BYTES);
    if (facts !== undefined) {
      this.#block.writeDoubleLE(facts.bytes, this.#used);
      this.#block.writeDoubleLE(facts.mtimeMs, this.#used + 8);
    }
    this.#used += Math.ceil((FACTS_BYTES + written) / UNIT) * UNIT;
    const end = (this.#spool.length + this.#used) / UNIT;
    if (end > MOST_UNITS) refuseLength(this.#count);
    this.#ends[this.#count++] = end;
  }

  /** Whoever gets the files closes them. */
  finish(): SourceFiles {
    this.#flush(0);
    const ends = new Uint32Array(new SharedArrayBuffer(this.#count * 4));
    ends.set(this.#ends.subarray(0, this.#count));
    return new SourceFiles({ ends, spool: this.#spool.share() }, () => this.#spool.close());
  }

  /** Gives up what was taken so far. */
  close(): void {
    this.#spool.close();
  }

  #flush(room: number): void {
    this.#spool.append(this.#block.subarray(0, this.#used));
    this.#used = 0;
    // Where a record is shorter than its room, zeros follow.
    if (room > this.#block.length) this.#block = Buffer.alloc(room);
    else this.#block.fill(0);
  }
}

/** Of one UTF-16 unit. */
const MAX_UTF8_BYTES = 3;

function longer(values: Uint32Array): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(2 * values.length);
  copy.set(values);
  return copy;
}

function refuseLength(count: number): never {
  throw new SourceError(
    {},
    `The paths of more than ${count.toLocaleString('en')} files are too long for one plan; pack the source in two datasets.`,
  );
}
