import { codePointOrderOf, HashTable, hashOfBytes, partitionPoint } from '@shardtool/base';
import { SourceError } from '../errors.js';
import { type SharedSpool, Spool, SpooledBytes, type SpoolPlace } from './spool.js';

/**
 * Header of a file's record: size in bytes and modification time in milliseconds since 1970, as two doubles. The path
 * in UTF-8 follows, padded with zeros to a multiple of eight.
 */
const FACTS_BYTES = 16;
const UNIT = 8;
/** Bytes that are collected before they are written to the spool. */
const BLOCK_BYTES = 1 << 20;
/** Bytes that are read ahead from the disk. */
const WINDOW_BYTES = 1 << 18;
const MOST_UNITS = 2 ** 32 - 1;
/** Number of files up to which paths are found by their hashes, in 8 to 16 bytes of memory per file. */
const MOST_HASHED = 2 ** 22;

/** Source files in the form that is sent to other threads. */
export interface SharedSourceFiles {
  readonly ends: Uint32Array;
  readonly spool: SharedSpool;
}

/**
 * All files below a source, sorted by path, from which a plan is made. Each takes four bytes of memory in addition to
 * the {@link Spool}, which is moved to disk when it becomes large.
 */
export class SourceFiles {
  /** End of each file's record, in units of eight bytes. */
  readonly #ends: Uint32Array;
  readonly #spool: SharedSpool;
  readonly #bytes: SpooledBytes;
  /** For all readers, because it takes longer to make than to use. */
  readonly #hashes: PathHashes = { table: null };
  /** Frees the memory or the file. After that no thread may read the files. */
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

  /** Yields everything as bytes, in pieces: any difference between files gives other bytes. */
  *pieces(): Generator<Uint8Array> {
    const { buffer, byteOffset, byteLength } = this.#ends;
    yield new Uint8Array(buffer, byteOffset, byteLength);
    const total = startOf(this.#ends, this.count);
    for (let from = 0; from < total; from += BLOCK_BYTES)
      yield this.#bytes.span(from, Math.min(total, from + BLOCK_BYTES));
  }

  /** Returns a reader. It sees values of a file that are filled in before it reaches that file. */
  reader(): FileReader {
    return new FileReader(this.#ends, this.#bytes, this.#hashes);
  }

  /** Fills in the size and the time of the files `from` to `to - 1`. `facts` returns them for a path and its number. */
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
  /** Size in bytes; 0 before it is measured, -1 if it could not be. */
  readonly bytes: number;
  /** Modification time in milliseconds since 1970; 0 before it is measured. */
  readonly mtimeMs: number;
}

/** The table by which paths are found, made when it is first needed. */
interface PathHashes {
  table: HashTable | null;
}

/** Reads source files by number; fastest in ascending order. */
export class FileReader {
  readonly #ends: Uint32Array;
  readonly #bytes: SpooledBytes;
  /** Buffered bytes: those from `#from` up to `#to`. */
  #window: Buffer;
  #from = 0;
  #to: number;
  readonly #hashes: PathHashes;

  constructor(ends: Uint32Array, bytes: SpooledBytes, hashes: PathHashes) {
    this.#hashes = hashes;
    this.#ends = ends;
    this.#bytes = bytes;
    this.#window = bytes.memory ?? Buffer.allocUnsafe(0);
    this.#to = this.#window.length;
  }

  /** Path relative to the source, with "/". */
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

  /** Copies the path's UTF-8 to `target` at `at`. */
  copyPath(file: number, target: Buffer, at: number): void {
    const start = this.#hold(file);
    this.#window.copy(target, at, start + FACTS_BYTES, pathEnd(this.#window, this.#ends[file]! * UNIT - this.#from));
  }

  get count(): number {
    return this.#ends.length;
  }

  /** Returns the file with this path; -1 if there is none. */
  find(path: string): number {
    const file = this.firstFrom(path);
    return file < this.count && this.path(file) === path ? file : -1;
  }

  /**
   * Like {@link find}, for many paths in any order. It is faster: by a table of hashes, or, if that would be large, with searches
   * that begin at the path before in the order.
   */
  findAll(paths: readonly string[], mostHashed = MOST_HASHED): Int32Array {
    const found = new Int32Array(paths.length).fill(-1);
    if (this.count <= mostHashed) {
      const files = this.#byHash();
      for (let row = 0; row < paths.length; row++) {
        const wanted = Buffer.from(paths[row]!);
        const hash = hashOfBytes(wanted, 0, wanted.length);
        found[row] = files.find(hash, (entry) => this.#compare(entry - 1, wanted) === 0) - 1;
      }
      return found;
    }
    const compare = codePointOrderOf(paths);
    const rows = Uint32Array.from(paths, (_, row) => row).sort((a, b) => compare(paths[a]!, paths[b]!));
    let low = 0;
    for (const row of rows) {
      const wanted = Buffer.from(paths[row]!);
      const isBefore = (file: number) => this.#compare(file, wanted) < 0;
      let [from, step] = [low, 1];
      while (from + step < this.count && isBefore(from + step)) {
        from += step;
        step *= 2;
      }
      low = partitionPoint(from, Math.min(this.count, from + step), isBefore);
      if (low < this.count && this.#compare(low, wanted) === 0) found[row] = low;
    }
    return found;
  }

  /** Numbers of all files plus one, by the hashes of their paths. */
  #byHash(): HashTable {
    if (this.#hashes.table !== null) return this.#hashes.table;
    const hashOf = (entry: number): number => {
      const start = this.#hold(entry - 1) + FACTS_BYTES;
      return hashOfBytes(this.#window, start, pathEnd(this.#window, this.#ends[entry - 1]! * UNIT - this.#from));
    };
    const table = new HashTable(Uint32Array, hashOf, this.count);
    for (let entry = 1; entry <= this.count; entry++) table.place(entry, hashOf(entry), () => false);
    this.#hashes.table = table;
    return table;
  }

  /** Returns the first file whose path is not before this one; {@link count} if there is none. */
  firstFrom(path: string): number {
    // The order of UTF-8 is the order of code points.
    const wanted = Buffer.from(path);
    return partitionPoint(0, this.count, (file) => this.#compare(file, wanted) < 0);
  }

  /** Negative if the path of a file sorts before `wanted`, positive if it sorts after it. */
  #compare(file: number, wanted: Buffer): number {
    const start = this.#hold(file) + FACTS_BYTES;
    const end = pathEnd(this.#window, this.#ends[file]! * UNIT - this.#from);
    return this.#window.compare(wanted, 0, wanted.length, start, end);
  }

  /** Loads the record of a file into the window, and returns its offset there. */
  #hold(file: number): number {
    const start = startOf(this.#ends, file);
    const end = this.#ends[file]! * UNIT;
    if (start >= this.#from && end <= this.#to) return start - this.#from;
    // Sequential reads read ahead; random reads do not.
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

/** Creates the files with these paths, which must be sorted. */
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

/** Takes sorted paths one by one, so that they need not be kept as strings. */
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

  /** `facts` are size and time, if they are already known. */
  add(path: string, facts?: FileFacts): void {
    const max = FACTS_BYTES + path.length * MAX_UTF8_BYTES + UNIT;
    if (this.#used + max > this.#block.length) this.#flush(max);
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

  /** The caller must close the files. */
  finish(): SourceFiles {
    this.#flush(0);
    const ends = new Uint32Array(new SharedArrayBuffer(this.#count * 4));
    ends.set(this.#ends.subarray(0, this.#count));
    return new SourceFiles({ ends, spool: this.#spool.share() }, () => this.#spool.close());
  }

  /** Discards the files taken so far. */
  close(): void {
    this.#spool.close();
  }

  #flush(room: number): void {
    this.#spool.append(this.#block.subarray(0, this.#used));
    this.#used = 0;
    // Zeros follow if a record is shorter than its reserved space.
    if (room > this.#block.length) this.#block = Buffer.alloc(room);
    else this.#block.fill(0);
  }
}

/** UTF-8 bytes of one UTF-16 unit. */
const MAX_UTF8_BYTES = 3;

function longer(values: Uint32Array): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(2 * values.length);
  copy.set(values);
  return copy;
}

function refuseLength(count: number): never {
  throw new SourceError(
    {},
    `The paths of more than ${count.toLocaleString('en')} files are too long for one plan; split the source into two datasets.`,
  );
}
