import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { FileError, LruCache, openErrorOf, openFileLimit, reasonOf, remedyOf } from '@shardtool/base';
import type { StoredImage } from '../../../codec/npy.js';
import { cutReason } from '../../../dataset/shards/cut-shards.js';
import type { Control } from '../../ring/control.js';
import type { Job } from '../../ring/job.js';
import type { ShardPaths } from '../../ring/shard-paths.js';

/** Number of files that all workers keep open together, and the part of the limit of the process that this may be. */
const OPEN_FILES = 1024;
const PART_OF_LIMIT = 1 / 8;
/** Number of files that each worker may always keep open. */
const LEAST_OPEN_FILES = 2;
/** A read of a cached file is shorter than this time and that of its bytes. */
const CACHED_READ_US = 25;
const CACHED_BYTES_PER_US = 1000;
/** The buffer of an image is used again, unless it is larger than this. */
const KEPT_BUFFER_BYTES = 4 * 2 ** 20;

/** The shard ends, at byte `end`, before the image does, at byte `needed`. */
export class CutImage extends Error {
  readonly end: number;
  readonly needed: number;

  constructor(end: number, needed: number) {
    super(cutReason({ end, needed }));
    this.end = end;
    this.needed = needed;
  }
}

/** Reads images directly from the shards, one at a time, and counts whether they came out of the page cache. */
export class ShardImages implements StoredImage {
  readonly #paths: ShardPaths;
  readonly #control: Control;
  readonly #files: LruCache<number, number>;
  #buffer = new Uint8Array(0);
  #shard = -1;
  #file = -1;
  #offset = 0;
  bytes = 0;

  /** `paths` are the files of the shards. */
  constructor(paths: ShardPaths, control: Control, workers: number) {
    this.#paths = paths;
    this.#control = control;
    const all = Math.min(OPEN_FILES, openFileLimit() * PART_OF_LIMIT);
    const most = Math.max(LEAST_OPEN_FILES, Math.floor(all / workers));
    this.#files = new LruCache(most, (file) => closeSync(file));
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

  /** The bytes of the image of a job, valid until the next one. Throws {@link FileError} and {@link CutImage}. */
  whole(job: Job): Uint8Array {
    this.at(job);
    if (this.#buffer.length < job.bytes) {
      const bytes = new Uint8Array(2 ** Math.ceil(Math.log2(job.bytes)));
      if (bytes.length > KEPT_BUFFER_BYTES) return this.#fill(new Uint8Array(job.bytes));
      this.#buffer = bytes;
    }
    return this.#fill(this.#buffer.subarray(0, job.bytes));
  }

  read(from: number, target: Uint8Array, at: number, bytes: number): void {
    const begun = performance.now();
    const position = this.#offset + from;
    let done = 0;
    while (done < bytes) {
      const got = this.#readSome(target, at + done, bytes - done, position + done);
      if (got === 0) {
        const { size } = fstatSync(this.#file);
        throw new CutImage(size, this.#offset + this.bytes);
      }
      done += got;
    }
    const us = Math.round((performance.now() - begun) * 1000);
    this.#control.countRead(us, Math.round(CACHED_READ_US + bytes / CACHED_BYTES_PER_US));
  }

  close(): void {
    this.#files.clear();
    this.#shard = -1;
  }

  #fill(target: Uint8Array): Uint8Array {
    this.read(0, target, 0, target.length);
    return target;
  }

  #readSome(target: Uint8Array, at: number, bytes: number, position: number): number {
    try {
      return readSync(this.#file, target, at, bytes, position);
    } catch (cause) {
      const path = this.#paths.at(this.#shard);
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
    const file = this.#openFile(this.#paths.at(shard));
    this.#files.set(shard, file);
    return file;
  }

  #openFile(path: string): number {
    try {
      return openSync(path, 'r');
    } catch (cause) {
      if (isOfLimit(cause) && this.#shard >= 0) {
        // Other code of this process, or of the machine, has opened many files.
        this.close();
        return this.#openFile(path);
      }
      const remedy = isOfLimit(cause) ? `; ${remedyOf(cause)}` : '';
      const Kind = openErrorOf(cause);
      throw new Kind({ path }, `${path} cannot be opened: ${reasonOf(cause)}${remedy}.`, { cause });
    }
  }
}

function isOfLimit(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EMFILE' || code === 'ENFILE';
}
