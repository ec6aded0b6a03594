import { rmSync } from 'node:fs';
import type { RootDatabase } from 'lmdb';
import { DIGEST_BYTES, type HashedFiles } from './hash-files.js';
import type { PackedImage } from './packed-images.js';

const NUMBER_BYTES = 4;

/**
 * A file, and the image with the same bytes that is packed instead: an image of the dataset, or the first file in the
 * order of the paths.
 */
export interface Duplicate {
  readonly file: number;
  readonly standsFor: number | PackedImage;
}

/**
 * Duplicates of files, in an LMDB store on disk, so that memory use does not grow with the number of files. The store
 * is temporary: only this class opens it, and closing deletes it.
 */
export class DigestTable {
  readonly #path: string;
  readonly #store: RootDatabase<Buffer, Buffer>;
  /** The first file of each digest. */
  readonly #first;
  /** Digest of each duplicate file, in the order of file numbers. */
  readonly #others;
  /** Lengths and crc32 of files, if they are compared with a dataset. */
  readonly #sums;
  /** The image of the dataset for each digest, as JSON. */
  readonly #packed;

  private constructor(path: string, store: RootDatabase<Buffer, Buffer>) {
    this.#path = path;
    this.#store = store;
    const binary = { keyEncoding: 'binary', encoding: 'binary' } as const;
    this.#first = store.openDB<Buffer, Buffer>({ name: 'first', ...binary });
    this.#others = store.openDB<Buffer, Buffer>({ name: 'others', ...binary });
    this.#sums = store.openDB<Buffer, Buffer>({ name: 'sums', ...binary });
    this.#packed = store.openDB<Buffer, Buffer>({ name: 'packed', ...binary });
  }

  /** Creates the store in the folder `path`, which is empty or does not exist yet. */
  static async create(path: string): Promise<DigestTable> {
    const { open } = await import('lmdb');
    // The store does not have to survive a crash.
    return new DigestTable(path, open<Buffer, Buffer>({ path, noSync: true, maxDbs: 4, compression: false }));
  }

  /** Adds digests of files, in any order. */
  add({ numbers, digests }: HashedFiles): void {
    this.#store.transactionSync(() => {
      for (const [i, number] of numbers.entries()) {
        const digest = digestAt(digests, i);
        if (digest === null) continue;
        const before = this.#first.get(digest);
        const first = before === undefined ? number : Math.min(number, before.readUInt32BE());
        if (before === undefined || first === number) this.#first.putSync(digest, numberBytes(number));
        if (before !== undefined) this.#others.putSync(numberBytes(Math.max(number, before.readUInt32BE())), digest);
      }
    });
  }

  /** Adds the lengths and crc32 of files that are compared with images of the dataset. */
  addSums({ numbers, crc32 }: HashedFiles, bytesOf: (number: number) => number): void {
    this.#store.transactionSync(() => {
      for (const [i, number] of numbers.entries()) this.#sums.putSync(sumBytes(bytesOf(number), crc32[i]!), PRESENT);
    });
  }

  /** True if a file has this length and this crc32. */
  hasSum(bytes: number, crc32: number): boolean {
    return this.#sums.get(sumBytes(bytes, crc32)) !== undefined;
  }

  /**
   * Adds digests of images of the dataset, after those of all files. If several images have the same digest, the first
   * one counts.
   */
  addPacked(digests: Uint8Array, images: readonly PackedImage[]): void {
    this.#store.transactionSync(() => {
      for (const [i, image] of images.entries()) {
        const digest = digestAt(digests, i);
        const first = digest === null ? undefined : this.#first.get(digest);
        if (digest === null || first === undefined || this.#packed.get(digest) !== undefined) continue;
        this.#packed.putSync(digest, Buffer.from(JSON.stringify(image)));
        this.#others.putSync(first, digest);
      }
    });
  }

  /** Yields the duplicates in the order of the files' numbers. */
  *duplicates(): Generator<Duplicate> {
    for (const { key, value } of this.#others.getRange({ start: LEAST_KEY })) {
      const packed = this.#packed.get(value);
      const standsFor =
        packed === undefined ? this.#first.get(value)!.readUInt32BE() : (JSON.parse(packed.toString()) as PackedImage);
      yield { file: key.readUInt32BE(), standsFor };
    }
  }

  async close(): Promise<void> {
    await this.#store.close();
    rmSync(this.#path, { force: true, recursive: true });
  }
}

/** Null for a file that could not be read. */
function digestAt(digests: Uint8Array, place: number): Buffer | null {
  const digest = Buffer.from(digests.subarray(place * DIGEST_BYTES, (place + 1) * DIGEST_BYTES));
  return digest.every((byte) => byte === 0) ? null : digest;
}

/** lmdb 3.1, the last version for glibc before 2.34, finds no binary keys without a start key. */
const LEAST_KEY = Buffer.alloc(1);
const PRESENT = Buffer.alloc(1);

function sumBytes(bytes: number, crc32: number): Buffer {
  const key = Buffer.alloc(8 + NUMBER_BYTES);
  key.writeDoubleBE(bytes);
  key.writeUInt32BE(crc32, 8);
  return key;
}

/** Big-endian, so that the store sorts by number. */
function numberBytes(number: number): Buffer {
  const bytes = Buffer.alloc(NUMBER_BYTES);
  bytes.writeUInt32BE(number);
  return bytes;
}
