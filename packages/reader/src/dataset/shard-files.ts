import {
  FileError,
  type IndexPart,
  openSource,
  type PartOfIndex,
  type ShardIndex,
  ShardtoolError,
  type Source,
} from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import type { ShardStore } from '../loader/read/load-shards.js';
import { Recent } from './recent.js';

/** A shard is shorter than its index says: it was cut, or replaced, since it was packed. */
export class ShardCutError extends ShardtoolError {}

/** A dataset was closed while something was being read from it. */
export class DatasetClosedError extends ShardtoolError {}

/** One shard of a dataset. */
export interface ShardFile {
  /** As messages name it: `000000.tar`. */
  readonly name: string;
  /** The file to read; for LMDB the `data.mdb` inside the folder. */
  readonly path: string;
  readonly bytes: number;
  readonly samples: number;
  /** Opens a file whose payloads do not lie in it as they are: all reading goes through this. Absent: `path` is read as it is. */
  readonly open?: (() => Promise<Source>) | undefined;
  /** Reads the index, or has it from when it was made. */
  loadIndex(): Promise<ShardIndex>;
  /** Reads some parts of it, which costs less. */
  loadParts<P extends IndexPart>(parts: readonly P[]): Promise<PartOfIndex<P>>;
}

/** Open files are few and large; this stays far below the usual limit of 1,024. */
const OPEN_FILES = 128;
const KEPT_INDEXES = 64;
const INDEXES_AHEAD = 24;
/** Long reads are cut into pieces of this size that run side by side. */
const PIECE_BYTES = 4 * 2 ** 20;

/** What is known of a remote file need not be asked for. */
function sizeOf({ path, bytes }: ShardFile): { readonly size: number } | undefined {
  return isRemote(path) ? { size: bytes } : undefined;
}

/** The shards of a dataset with their open files and indexes, of which the most recently used are kept. */
export class ShardFiles implements ShardStore {
  readonly files: readonly ShardFile[];
  /** Samples of each shard. */
  readonly samples: Float64Array;
  /** Number in the dataset of each shard's first sample, and the total behind the last. */
  readonly firstSample: Float64Array;
  readonly #sources: Recent<number, Source>;
  readonly #indexes: Recent<number, ShardIndex>;
  /** Shards lie where each request takes a while. */
  readonly #isRemote: boolean;
  #lastIndex = -1;
  #closed = false;

  constructor(files: readonly ShardFile[]) {
    this.files = files;
    this.#isRemote = files.some(({ path }) => isRemote(path));
    this.samples = Float64Array.from(files, ({ samples }) => samples);
    this.firstSample = new Float64Array(files.length + 1);
    for (let k = 0; k < files.length; k++) this.firstSample[k + 1] = this.firstSample[k]! + files[k]!.samples;
    this.#sources = new Recent(
      OPEN_FILES,
      (shard) => files[shard]!.open?.() ?? openSource(files[shard]!.path, sizeOf(files[shard]!)),
      (source) => source.close(),
    );
    this.#indexes = new Recent(KEPT_INDEXES, (shard) => files[shard]!.loadIndex());
  }

  /** At least so many indexes stay in memory: as many shards as are read in turn. */
  keepIndexes(count: number): void {
    this.#indexes.reserve(count);
  }

  async index(shard: number): Promise<ShardIndex> {
    this.throwIfClosed();
    // Whoever walks through all of them does not wait for one after the other.
    const walks = shard === this.#lastIndex + 1 && this.#isRemote;
    this.#lastIndex = shard;
    if (walks) {
      for (let next = shard + 1; next <= Math.min(shard + INDEXES_AHEAD, this.files.length - 1); next++) {
        this.#indexes.get(next).catch(() => {});
      }
    }
    return this.#indexes.get(shard);
  }

  async read(shard: number, offset: number, target: Uint8Array): Promise<void> {
    this.throwIfClosed();
    const source = await this.#sources.get(shard);
    if (target.length <= PIECE_BYTES) return this.#readPiece(shard, source, offset, target);
    const pieces: Promise<void>[] = [];
    for (let at = 0; at < target.length; at += PIECE_BYTES) {
      pieces.push(this.#readPiece(shard, source, offset + at, target.subarray(at, at + PIECE_BYTES)));
    }
    await Promise.all(pieces);
  }

  async #readPiece(shard: number, source: Source, offset: number, target: Uint8Array): Promise<void> {
    const { name, path } = this.files[shard]!;
    let got: number;
    try {
      got = await source.readAt(offset, target);
    } catch (cause) {
      this.throwIfClosed();
      if (cause instanceof FileError && isRemote(path)) throw cause;
      throw new FileError(
        { shard: name, path, offset },
        `${path} cannot be read at byte ${offset} (${(cause as Error).message}).`,
        {
          cause,
        },
      );
    }
    if (got < target.length) {
      throw new ShardCutError(
        { shard: name, path, offset: offset + got },
        `${name} ends at byte ${offset + got}, but its index names bytes up to ${offset + target.length}: it was cut or ` +
          'replaced since it was packed. Run "shardtool verify" on the dataset.',
      );
    }
  }

  /** Throws {@link DatasetClosedError}. */
  throwIfClosed(): void {
    if (this.#closed) {
      throw new DatasetClosedError(
        {},
        'The dataset was closed while it was in use: end its loops first, or open it again.',
      );
    }
  }

  /** Closes the files; reads that are under way end first. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#sources.clear(), this.#indexes.clear()]);
  }
}
