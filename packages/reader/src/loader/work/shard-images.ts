import { closeSync, openSync, readSync } from 'node:fs';
import { FileError, LruCache, reasonOf, SampleDecodeError } from '@shardtool/base';
import type { StoredImage } from '../../codec/npy.js';
import type { Job } from '../ring/job.js';

/** Largest number of open files per worker. */
const OPEN_FILES = 64;

/** Reads images directly from the shards, one at a time. Used only for files in the page cache. */
export class ShardImages implements StoredImage {
  readonly #paths: readonly string[];
  readonly #files = new LruCache<number, number>(OPEN_FILES, (file) => closeSync(file));
  #shard = -1;
  #file = -1;
  #offset = 0;
  bytes = 0;

  /** `paths` are the files of the shards. */
  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /** Selects the image of a job, and returns this object. Throws {@link FileError}. */
  at({ shard, offset, bytes }: Job): this {
    if (shard !== this.#shard) {
      this.#file = this.#open(shard);
      this.#shard = shard;
    }
    this.#offset = offset;
    this.bytes = bytes;
    return this;
  }

  read(from: number, target: Uint8Array, at: number, bytes: number): void {
    const position = this.#offset + from;
    let done = 0;
    while (done < bytes) {
      const got = this.#readSome(target, at + done, bytes - done, position + done);
      if (got === 0) {
        throw new SampleDecodeError(
          {},
          `its shard ends at byte ${position + done}: it was truncated after it was packed`,
        );
      }
      done += got;
    }
  }

  close(): void {
    this.#files.clear();
    this.#shard = -1;
  }

  #readSome(target: Uint8Array, at: number, bytes: number, position: number): number {
    try {
      return readSync(this.#file, target, at, bytes, position);
    } catch (cause) {
      const path = this.#paths[this.#shard]!;
      throw new FileError(
        { path, offset: position },
        `${path} cannot be read at byte ${position}: ${reasonOf(cause)}.`,
        {
          cause,
        },
      );
    }
  }

  #open(shard: number): number {
    const known = this.#files.get(shard);
    if (known !== undefined) return known;
    const path = this.#paths[shard]!;
    try {
      const file = openSync(path, 'r');
      this.#files.set(shard, file);
      return file;
    } catch (cause) {
      throw new FileError({ path }, `${path} cannot be opened: ${reasonOf(cause)}.`, { cause });
    }
  }
}
