/**
 * The crop index of a shard, `000000.crops`. For each baseline JPEG it has, in packed form, the positions in the
 * entropy-coded data at which every few MCUs begin. Integers are little-endian.
 *
 *   the packed indexes of the rows in sequence, each preceded by a crc32 (uint32) that continues the crc32 of the image
 *   one record per row (24 bytes): offset of the image in the shard (float64), its length and crc32 (uint32 each), length
 *     of the row's packed index (uint32; 0 for none), and why it has none (uint32, a code of the writer; 0 if there is no image)
 *   the end (32 bytes): version, rows, crc32 of the records and of these two numbers, 0 (uint32 each), and 16 bytes of mark
 */
import { writeSync } from 'node:fs';
import { AtomicFile, CropIndexError, crc32, FileError, reasonOf, VersionError } from '@shardtool/base';
import { readAgainIf, type StorageOptions } from '@shardtool/storage';
import { openSource, type Source } from '../source.js';

/** A text near the end of every such file. */
export const CROP_INDEX_MARK = 'shardtool.crops';

const VERSION = 1;
const RECORD_BYTES = 24;
const END_BYTES = 32;
const CHECK_BYTES = 4;
const MARK_BYTES = 16;
/** Size of one write, in bytes. */
const BUFFER_BYTES = 1 << 20;

/** An image of the shard, as in the shard's index. */
export interface IndexedImage {
  readonly offset: number;
  readonly bytes: number;
  readonly crc32: number;
}

/** The entries of a crop index, one per row. A row is valid for an image if offset, length and crc32 match those in the shard's index. */
export interface CropIndexTable {
  readonly rows: number;
  readonly imageOffset: Float64Array;
  readonly imageBytes: Uint32Array;
  readonly imageCrc32: Uint32Array;
  /** Offset of the row's packed index with its crc32 in the file, and its length; 0 bytes if there is none. */
  readonly offset: Float64Array;
  readonly bytes: Uint32Array;
  /** Code of the reason why a row has no index. */
  readonly refusal: Uint32Array;
}

/** Writes a crop index row by row, under a temporary name. Throws {@link FileError}. */
export class CropIndexWriter {
  readonly #file: AtomicFile;
  readonly #buffer = Buffer.alloc(BUFFER_BYTES);
  #buffered = 0;
  #records = Buffer.alloc(RECORD_BYTES * 1024);
  #rows = 0;

  private constructor(file: AtomicFile) {
    this.#file = file;
  }

  static async create(path: string): Promise<CropIndexWriter> {
    const file = await AtomicFile.create(path).catch((cause) => {
      throw unwritable(path, cause);
    });
    return new CropIndexWriter(file);
  }

  /** Adds the next row: its image, and the packed index or the code of the reason for its absence. */
  add({ offset, bytes, crc32: imageCrc32 }: IndexedImage, index: Uint8Array | number): void {
    const packed = typeof index === 'number' ? null : index;
    this.#record(
      offset,
      bytes,
      imageCrc32,
      packed === null ? 0 : packed.length + CHECK_BYTES,
      Number(packed === null && index),
    );
    if (packed === null) return;
    const check = Buffer.alloc(CHECK_BYTES);
    check.writeUInt32LE(crc32(packed, imageCrc32));
    this.#write(check);
    this.#write(packed);
  }

  /** Adds a row without an image. */
  addNone(): void {
    this.#record(-1, 0, 0, 0, 0);
  }

  /** Writes the end, flushes the file and renames it to its final name. */
  async finish(): Promise<void> {
    const records = this.#records.subarray(0, this.#rows * RECORD_BYTES);
    const end = Buffer.alloc(END_BYTES);
    end.writeUInt32LE(VERSION, 0);
    end.writeUInt32LE(this.#rows, 4);
    end.writeUInt32LE(crc32(end.subarray(0, 8), crc32(records)), 8);
    end.write(CROP_INDEX_MARK, END_BYTES - MARK_BYTES, 'latin1');
    this.#write(records);
    this.#write(end);
    this.#flush();
    await this.#file.place().catch((cause) => {
      throw unwritable(this.#file.path, cause);
    });
  }

  /** Removes the unfinished file. */
  abandon(): Promise<void> {
    return this.#file.abandon();
  }

  #record(offset: number, bytes: number, sum: number, length: number, refusal: number): void {
    if ((this.#rows + 1) * RECORD_BYTES > this.#records.length) {
      this.#records = Buffer.concat([this.#records, Buffer.alloc(this.#records.length)]);
    }
    const at = this.#rows++ * RECORD_BYTES;
    this.#records.writeDoubleLE(offset, at);
    // Longer images have no crop index.
    this.#records.writeUInt32LE(Math.min(bytes, 0xffffffff), at + 8);
    this.#records.writeUInt32LE(sum, at + 12);
    this.#records.writeUInt32LE(length, at + 16);
    this.#records.writeUInt32LE(refusal, at + 20);
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length > BUFFER_BYTES - this.#buffered) this.#flush();
    if (bytes.length > BUFFER_BYTES) {
      this.#writeOut(bytes);
      return;
    }
    this.#buffer.set(bytes, this.#buffered);
    this.#buffered += bytes.length;
  }

  #flush(): void {
    this.#writeOut(this.#buffer.subarray(0, this.#buffered));
    this.#buffered = 0;
  }

  #writeOut(bytes: Uint8Array): void {
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#file.handle.fd, bytes, done);
    } catch (cause) {
      throw unwritable(this.#file.path, cause);
    }
  }
}

function unwritable(path: string, cause: unknown): FileError {
  return new FileError({ path }, `${path} cannot be written: ${reasonOf(cause)}.`, { cause });
}

/** An open crop index. */
export interface CropIndexFile {
  readonly table: CropIndexTable;
  readonly source: Source;
}

/**
 * Opens a crop index and reads its table. Throws {@link FileError}, {@link CropIndexError} if its end or its table has
 * changed since it was written, and {@link VersionError} if a newer version wrote it.
 */
export async function openCropIndex(path: string, storage?: StorageOptions): Promise<CropIndexFile> {
  return readAgainIf([CropIndexError, VersionError], path, storage, () => openOnce(path, storage));
}

async function openOnce(path: string, storage: StorageOptions | undefined): Promise<CropIndexFile> {
  const source = await openSource(path, { first: 'end' }, storage);
  try {
    return { table: await readTable(source), source };
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function readTable(source: Source): Promise<CropIndexTable> {
  const { size, location } = source;
  const end = Buffer.alloc(Math.min(size, END_BYTES));
  await source.readAt(size - end.length, end);
  const mark = end.toString('latin1', END_BYTES - MARK_BYTES, END_BYTES - MARK_BYTES + CROP_INDEX_MARK.length);
  if (mark !== CROP_INDEX_MARK) throw unusable(location, 'is not a crop index, or its end is missing');
  const version = end.readUInt32LE(0);
  if (version > VERSION) {
    const message = `${location} is a crop index of version ${version}, but this shardtool reads version ${VERSION}; update shardtool.`;
    throw new VersionError({ path: location, found: version, known: VERSION }, message);
  }
  const rows = end.readUInt32LE(4);
  const begin = size - END_BYTES - rows * RECORD_BYTES;
  if (begin < 0) throw unusable(location, 'has changed since it was written');
  const records = Buffer.alloc(rows * RECORD_BYTES);
  const got = await source.readAt(begin, records);
  const sum = crc32(end.subarray(0, 8), crc32(records.subarray(0, got)));
  if (sum !== end.readUInt32LE(8)) throw unusable(location, 'has changed since it was written');
  return tableOf(records, rows, begin, location);
}

function tableOf(records: Buffer, rows: number, begin: number, location: string): CropIndexTable {
  const table = {
    rows,
    imageOffset: new Float64Array(rows),
    imageBytes: new Uint32Array(rows),
    imageCrc32: new Uint32Array(rows),
    offset: new Float64Array(rows),
    bytes: new Uint32Array(rows),
    refusal: new Uint32Array(rows),
  };
  let next = 0;
  for (let row = 0; row < rows; row++) {
    const at = row * RECORD_BYTES;
    table.imageOffset[row] = records.readDoubleLE(at);
    table.imageBytes[row] = records.readUInt32LE(at + 8);
    table.imageCrc32[row] = records.readUInt32LE(at + 12);
    table.offset[row] = next;
    table.bytes[row] = records.readUInt32LE(at + 16);
    table.refusal[row] = records.readUInt32LE(at + 20);
    next += table.bytes[row]!;
  }
  if (next !== begin) throw unusable(location, 'has changed since it was written');
  return table;
}

/** The packed index in the stored bytes of a row whose image has this crc32; null if either has changed. */
export function checkedCropIndex(stored: Uint8Array, imageCrc32: number): Uint8Array | null {
  if (stored.length <= CHECK_BYTES) return null;
  const packed = cropIndexOf(stored);
  const check = (stored[0]! | (stored[1]! << 8) | (stored[2]! << 16) | (stored[3]! << 24)) >>> 0;
  return crc32(packed, imageCrc32) === check ? packed : null;
}

/** {@link checkedCropIndex} without the check. */
export function cropIndexOf(stored: Uint8Array): Uint8Array {
  return stored.subarray(CHECK_BYTES);
}

function unusable(path: string, what: string): CropIndexError {
  return new CropIndexError({ path }, `${path} ${what}; rebuild it with "shardtool index --index crops".`);
}
