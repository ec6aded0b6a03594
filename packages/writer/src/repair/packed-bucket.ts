import { FileNotFoundError } from '@shardtool/base';
import { sampleTooLarge, whyUnsafe } from '@shardtool/format';
import { openStorage, type Storage, type StorageOptions } from '@shardtool/storage';
import { SourceError } from '../errors.js';
import { candidates, type PackedFiles } from './packed-folder.js';
import { heldPayload, type Payload } from './payload.js';

/** The bucket, or another remote location, that the dataset was packed from. Files are kept in memory as a whole. */
export class PackedBucket implements PackedFiles {
  readonly #storage: Promise<Storage>;
  readonly #maxBytes: number;

  constructor(root: string, storage: StorageOptions | undefined, maxBytes: number) {
    this.#storage = openStorage(root, storage);
    this.#maxBytes = maxBytes;
  }

  async read(key: string, source: string, field: string): Promise<Payload | null> {
    for (const candidate of candidates(key, source, field)) {
      if (whyUnsafe(candidate) !== null) continue;
      const bytes = await this.#read(candidate, key);
      if (bytes !== null) return heldPayload(bytes);
    }
    return null;
  }

  async #read(name: string, key: string): Promise<Uint8Array | null> {
    const storage = await this.#storage;
    try {
      const file = await storage.open(name);
      try {
        if (file.size > this.#maxBytes) throw sampleTooLarge(file.location, key, file.size, this.#maxBytes);
        const bytes = new Uint8Array(file.size);
        await file.readAt(0, bytes);
        return bytes;
      } finally {
        await file.close();
      }
    } catch (error) {
      // The bucket was listed. So a file that it refuses now exists, and this process may no longer read it.
      if (error instanceof FileNotFoundError) return null;
      throw error;
    }
  }
}

/** Throws {@link SourceError} for a location without files, and errors of listing. */
export async function checkBucket(root: string, how: StorageOptions | undefined): Promise<void> {
  const storage = await openStorage(root, how);
  for await (const _ of storage.list('', { deep: true })) return;
  const message = `The source ${storage.location} contains no files; give the location that the dataset was packed from.`;
  throw new SourceError({ path: storage.location }, message);
}
