import { rmSync } from 'node:fs';
import type { RootDatabase } from 'lmdb';
import { DIGEST_BYTES, type HashedFiles } from './hash-files.js';

const NUMBER_BYTES = 4;

/** A file, and the one with the same bytes that stands for it: the first in the order of the paths. */
export interface Duplicate {
  readonly file: number;
  readonly standsFor: number;
}

/**
 * Which file stands for which, in an LMDB store on the disk: memory does not grow with the number of files. The store
 * is one of this moment, which nothing but this class opens; it is gone when it is closed.
 */
export class DigestTable {
  readonly #path: string;
  readonly #store: RootDatabase<Buffer, Buffer>;
  /** The first file of each digest. */
  readonly #first;
  /** The digest of each file that is not the first, in the order of their numbers. */
  readonly #others;

  private constructor(path: string, store: RootDatabase<Buffer, Buffer>) {
    this.#path = path;
    this.#store = store;
    const binary = { keyEncoding: 'binary', encoding: 'binary' } as const;
    this.#first = store.openDB<Buffer, Buffer>({ name: 'first', ...binary });
    this.#others = store.openDB<Buffer, Buffer>({ name: 'others', ...binary });
  }

  /** Makes the store in the folder `path`, which does not exist yet or is empty. */
  static async create(path: string): Promise<DigestTable> {
    const { open } = await import('lmdb');
    // Nothing of it has to survive a crash.
    return new DigestTable(path, open<Buffer, Buffer>({ path, noSync: true, maxDbs: 2, compression: false }));
  }

  /** Takes digests of files, in any order. */
  add({ numbers, digests }: HashedFiles): void {
    this.#store.transactionSync(() => {
      for (const [i, number] of numbers.entries()) {
        const digest = Buffer.from(digests.subarray(i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES));
        if (digest.every((byte) => byte === 0)) continue;
        const before = this.#first.get(digest);
        const first = before === undefined ? number : Math.min(number, before.readUInt32BE());
        if (before === undefined || first === number) this.#first.putSync(digest, numberBytes(number));
        if (before !== undefined) this.#others.putSync(numberBytes(Math.max(number, before.readUInt32BE())), digest);
      }
    });
  }

  /** In the order of the files' numbers. */
  *duplicates(): Generator<Duplicate> {
    for (const { key, value } of this.#others.getRange({})) {
      yield { file: key.readUInt32BE(), standsFor: this.#first.get(value)!.readUInt32BE() };
    }
  }

  async close(): Promise<void> {
    await this.#store.close();
    rmSync(this.#path, { force: true, recursive: true });
  }
}

/** Big-endian, so that the store sorts by number. */
function numberBytes(number: number): Buffer {
  const bytes = Buffer.alloc(NUMBER_BYTES);
  bytes.writeUInt32BE(number);
  return bytes;
}
