import { type FileHandle, open } from 'node:fs/promises';
import { crc32, readFully, totalOf, writeAtomically } from '@shardtool/base';
import { byFirstBits, keyHash } from './key-hash.js';

/** First bytes of the file. The last one is the version of the format. */
const MAGIC = Buffer.from('shardtool.keys\n\x01');
/** After the magic: length of the header and its crc32, each as uint32 LE. */
const HEAD_BYTES = MAGIC.length + 8;
/** Longest header that is read, in bytes. */
const MOST_HEADER = 256 << 20;
/** Mean number of entries of a group. */
const GROUP_ENTRIES = 64;
/** Bytes of a group in the directory: offset of its first entry and crc32, each as uint32 LE. */
const GROUP_BYTES = 8;
/** A key list is missing or damaged. It only saves work, so it is made again: no user sees this error. */
export class KeyListError extends Error {
  readonly path: string;

  constructor(path: string, cause?: unknown) {
    super(`${path} is missing or damaged`, { cause });
    this.path = path;
  }
}

interface Header {
  /** Number of keys. */
  readonly samples: number;
  /** Right shift of a hash that leaves the bits of its group. */
  readonly shift: number;
  /** Name and crc32 of each shard. */
  readonly shards: readonly string[];
}

/** Keys of one shard, in the order of its samples. */
export interface ListedShard {
  /** Name and crc32, which identify the shard. */
  readonly name: string;
  readonly samples: number;
  keys(): Promise<readonly string[]>;
}

/**
 * Writes which of these shards has which key: 4 bytes per key, and a directory. The keys themselves are not stored. All
 * numbers are little-endian:
 *
 *     "shardtool.keys\n", version 1       16 bytes
 *     uint32 length, uint32 crc32         of the header
 *     header                              JSON: samples, shift, shards
 *     directory                           per group: uint32 first entry, uint32 crc32; one group more than there are
 *     entries                             uint32 each
 *
 * A key belongs to the group of the first bits of {@link keyHash}. Its entry has the number of its shard in the upper
 * bits, and as many last bits of the hash as there is room for. The crc32 of a group covers the two offsets that
 * delimit it and its entries. Memory: 8 bytes per key. Returns false if the file cannot be written, or if a shard
 * has another number of keys than `samples`. Rejects with the errors of `keys`.
 */
export async function writeKeyList(path: string, shards: readonly ListedShard[], readAtOnce: number): Promise<boolean> {
  const samples = totalOf(shards, (shard) => shard.samples);
  const hashes = await hashesOf(shards, samples, readAtOnce);
  if (hashes === null) return false;
  const { shift, starts } = byFirstBits(hashes, GROUP_ENTRIES);
  const entries = new Uint32Array(samples);
  const { shardShift, hashMask } = entryBits(shards.length, shift);
  const ends = starts.slice();
  let index = 0;
  shards.forEach((shard, number) => {
    for (let row = 0; row < shard.samples; row++) {
      const hash = hashes[index++]!;
      entries[ends[hash >>> shift]!++] = (number * 2 ** shardShift + (hash & hashMask)) >>> 0;
    }
  });
  const header: Header = { samples, shift, shards: shards.map(({ name }) => name) };
  const text = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(HEAD_BYTES);
  MAGIC.copy(head);
  head.writeUInt32LE(text.length, MAGIC.length);
  head.writeUInt32LE(crc32(text), MAGIC.length + 4);
  const body = Buffer.from(entries.buffer);
  return writeAtomically(path, [head, text, directoryOf(starts, body), body]).then(
    () => true,
    () => false,
  );
}

/** Hashes of all keys; null if a shard has another number of keys. */
async function hashesOf(
  shards: readonly ListedShard[],
  samples: number,
  readAtOnce: number,
): Promise<Uint32Array | null> {
  const hashes = new Uint32Array(samples);
  let index = 0;
  for (let first = 0; first < shards.length; first += readAtOnce) {
    const some = shards.slice(first, first + readAtOnce);
    const read = await Promise.all(some.map((shard) => shard.keys()));
    if (read.some((keys, i) => keys.length !== some[i]!.samples)) return null;
    for (const keys of read) for (const key of keys) hashes[index++] = keyHash(key);
  }
  return hashes;
}

/** Entries of a number of shards have the number in the bits from `shardShift`, and bits of the hash below. */
function entryBits(shards: number, groupShift: number): { readonly shardShift: number; readonly hashMask: number } {
  const shardShift = Math.min(groupShift, 32 - Math.ceil(Math.log2(Math.max(2, shards))));
  return { shardShift, hashMask: 2 ** shardShift - 1 };
}

function directoryOf(starts: Uint32Array, body: Buffer): Buffer {
  const directory = Buffer.alloc(starts.length * GROUP_BYTES);
  for (let group = 0; group < starts.length; group++) {
    const start = starts[group]!;
    directory.writeUInt32LE(start, group * GROUP_BYTES);
    if (group + 1 === starts.length) break;
    const end = starts[group + 1]!;
    directory.writeUInt32LE(groupSum(start, end, body.subarray(start * 4, end * 4)), group * GROUP_BYTES + 4);
  }
  return directory;
}

function groupSum(start: number, end: number, entries: Uint8Array): number {
  const bounds = Buffer.alloc(8);
  bounds.writeUInt32LE(start, 0);
  bounds.writeUInt32LE(end, 4);
  return crc32(entries, crc32(bounds));
}

/** A file that {@link writeKeyList} wrote. Of each look-up, it reads one group. */
export class KeyList {
  /** Name and crc32 of each shard whose keys are in the list. */
  readonly shards: readonly string[];
  readonly path: string;
  /** Number of keys. */
  readonly samples: number;
  readonly #directory: number;
  readonly #entries: number;
  readonly #shift: number;
  readonly #shardShift: number;
  readonly #hashMask: number;

  private constructor(path: string, { samples, shift, shards }: Header, directory: number) {
    this.path = path;
    this.shards = shards;
    this.samples = samples;
    this.#directory = directory;
    this.#entries = directory + (2 ** (32 - shift) + 1) * GROUP_BYTES;
    this.#shift = shift;
    const { shardShift, hashMask } = entryBits(shards.length, shift);
    this.#shardShift = shardShift;
    this.#hashMask = hashMask;
  }

  /** Reads what the list has. Throws {@link KeyListError} for a file that is damaged or missing. */
  static open(path: string): Promise<KeyList> {
    return reading(path, async (handle) => {
      const head = await readAt(handle, path, 0, HEAD_BYTES);
      const length = head.readUInt32LE(MAGIC.length);
      if (!head.subarray(0, MAGIC.length).equals(MAGIC) || length > MOST_HEADER) throw new KeyListError(path);
      const text = await readAt(handle, path, HEAD_BYTES, length);
      if (crc32(text) !== head.readUInt32LE(MAGIC.length + 4)) throw new KeyListError(path);
      const list = new KeyList(path, JSON.parse(text.toString()), HEAD_BYTES + length);
      if ((await handle.stat()).size !== list.#entries + list.samples * 4) throw new KeyListError(path);
      return list;
    });
  }

  /** Returns the numbers of the shards that may have this key, in order. Throws {@link KeyListError}. */
  shardsWith(key: string): Promise<readonly number[]> {
    const hash = keyHash(key);
    const group = hash >>> this.#shift;
    return reading(this.path, async (handle) => {
      const record = await readAt(handle, this.path, this.#directory + group * GROUP_BYTES, 2 * GROUP_BYTES);
      const start = record.readUInt32LE(0);
      const end = record.readUInt32LE(GROUP_BYTES);
      if (start > end || end > this.samples) throw new KeyListError(this.path);
      const entries = await readAt(handle, this.path, this.#entries + start * 4, (end - start) * 4);
      if (groupSum(start, end, entries) !== record.readUInt32LE(4)) throw new KeyListError(this.path);
      const found = new Set<number>();
      for (let at = 0; at < entries.length; at += 4) {
        const entry = entries.readUInt32LE(at);
        if (((entry ^ hash) & this.#hashMask) === 0) found.add(entry >>> this.#shardShift);
      }
      return [...found].sort((a, b) => a - b);
    });
  }
}

/** Opens the file only for this read, so that nothing has to be closed later. */
async function reading<Result>(path: string, read: (handle: FileHandle) => Promise<Result>): Promise<Result> {
  const handle = await open(path).catch((cause) => {
    throw new KeyListError(path, cause);
  });
  try {
    return await read(handle);
  } catch (cause) {
    throw cause instanceof KeyListError ? cause : new KeyListError(path, cause);
  } finally {
    await handle.close();
  }
}

async function readAt(handle: FileHandle, path: string, at: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  if ((await readFully(handle, buffer, at)) < bytes) throw new KeyListError(path);
  return buffer;
}
