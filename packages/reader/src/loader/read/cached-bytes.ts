import { randomUUID } from 'node:crypto';
import type { CacheFolder } from '@shardtool/storage';
import type { ShardFile } from '../../dataset/shards/shard-file.js';
import type { ByteRange, ShardBytes, ShardStore } from '../../dataset/shards/shard-store.js';
import { type CutDataset, fileMark, keyOf, marginOf, type Piece, piecesOf } from './pieces.js';

/** Maximum number of pieces in memory that are being written to the cache. */
const CONCURRENT_PIECES = 16;
/** Number of attempts to get a piece from the cache. After that, its bytes are fetched without the cache. */
const MAX_LOOKS = 3;

export interface CachedBytesOptions {
  readonly store: Pick<ShardStore, 'bytes' | 'indexes'>;
  readonly files: readonly ShardFile[];
  readonly cache: CacheFolder;
  /** The datasets, in the order of their shards. */
  readonly sources: readonly CutDataset[];
}

export interface CacheCounts {
  hits: number;
  hitBytes: number;
}

/** A piece that is being claimed and fetched. */
interface Fetching {
  /** Null: the piece was not claimed. It is read without the cache, or another process is fetching it. */
  readonly bytes: Promise<Uint8Array | null>;
  /** Resolves when the piece is in its file, or will not be stored. */
  readonly settled: Promise<void>;
}

/**
 * The bytes of shards, with a cache of pieces: whole chunks if chunks are the unit of the shuffle, otherwise stretches of the
 * shard. A piece that the cache will keep is fetched whole. Other bytes are fetched as they are requested, and so are bytes
 * that another process takes too long to fetch. Crop indexes are not cached.
 */
export class CachedBytes implements ShardBytes {
  readonly counts: CacheCounts = { hits: 0, hitBytes: 0 };
  readonly mayDiffer = true;
  readonly #options: CachedBytesOptions;
  readonly #turns = new Turns(CONCURRENT_PIECES);
  /** Pieces that this process is fetching, until they are settled. */
  readonly #fetching = new Map<string, Fetching>();
  /** Version marks by shard; see {@link fileMark}. */
  readonly #marks = new Map<number, string>();
  /** Stands for the version of files that have none. No other process, and no later run, finds their pieces. */
  readonly #run = randomUUID();

  constructor(options: CachedBytesOptions) {
    this.#options = options;
  }

  async read(range: ByteRange, target: Uint8Array): Promise<void> {
    const { bytes } = this.#options.store;
    if (range.file === 'crops') return bytes.read(range, target);
    if (range.isFresh !== true) return this.#read(range, target);
    await this.#drop(range, target.length);
    await bytes.read(range, target);
  }

  /** Resolves when no piece is being written to the cache. */
  async settle(): Promise<void> {
    while (this.#fetching.size > 0) await Promise.all(Array.from(this.#fetching.values(), ({ settled }) => settled));
  }

  /** Drops pieces whose bytes are wrong. The next read of such a piece fetches it. */
  async #drop({ shard, offset }: ByteRange, bytes: number): Promise<void> {
    for (const { name } of await this.#piecesOf(shard, offset, bytes)) {
      await this.#fetching.get(name)?.settled;
      await this.#options.cache.drop(name);
    }
  }

  async #read(range: ByteRange, target: Uint8Array): Promise<void> {
    const { shard, offset } = range;
    const pass = range.pass ?? null;
    const parts: Promise<void>[] = [];
    let at = offset;
    const end = offset + target.length;
    const direct = (to: number): void => {
      if (to > at) parts.push(this.#fetchPart(shard, at, target.subarray(at - offset, to - offset)));
      at = Math.max(at, to);
    };
    for (const piece of await this.#piecesOf(shard, offset, target.length)) {
      direct(Math.min(end, piece.offset));
      const to = Math.min(end, piece.offset + piece.bytes);
      if (to > at) parts.push(this.#readPart(piece, at, target.subarray(at - offset, to - offset), pass));
      at = Math.max(at, to);
    }
    direct(end);
    for (const result of await Promise.allSettled(parts)) if (result.status === 'rejected') throw result.reason;
  }

  #fetchPart(shard: number, offset: number, target: Uint8Array): Promise<void> {
    return this.#options.store.bytes.read({ shard, file: 'shard', offset }, target);
  }

  async #readPart(piece: Piece, from: number, target: Uint8Array, pass: number | null): Promise<void> {
    const { cache } = this.#options;
    const { name, shard } = piece;
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      if (await this.#fromCache(piece, from, target, pass)) return;
      const fetching = this.#fetching.get(name);
      if (fetching === undefined && cache.isBeingWritten(name)) {
        if (!(await cache.whenWritten(name))) break;
        continue;
      }
      const bytes = await (fetching ?? this.#begin(piece, target.length, pass)).bytes;
      if (bytes !== null) return copyPart(piece, bytes, from, target);
      // Another process may have stored it after this process looked for its file and before the claim, so it looks
      // again.
      if (!cache.has(name) && !cache.isBeingWritten(name)) break;
    }
    return this.#fetchPart(shard, from, target);
  }

  /** Claims a piece and fetches all of it, because `wanted` bytes of it are needed now. Concurrent readers share the fetch. */
  #begin(piece: Piece, wanted: number, pass: number | null): Fetching {
    const { cache } = this.#options;
    const { name } = piece;
    const key = this.#keyOf(piece, pass);
    const claimed = cache.claim(name, piece.bytes, key + marginOf(piece, this.#sourceOf(piece.shard), pass, wanted));
    const bytes = claimed.then((claim) => (claim === null ? null : this.#fetch(piece)));
    const settle = async (): Promise<void> => {
      const claim = await claimed;
      if (claim === null) return;
      const content = await bytes.catch(() => null);
      if (content === null) await cache.giveBack(claim);
      else await cache.write(claim, content, key);
      this.#turns.give();
    };
    const settled = settle().finally(() => this.#fetching.delete(name));
    const fetching = { bytes, settled };
    this.#fetching.set(name, fetching);
    return fetching;
  }

  async #fetch({ shard, offset, bytes }: Piece): Promise<Uint8Array> {
    await this.#turns.take();
    const content = new Uint8Array(new SharedArrayBuffer(bytes));
    await this.#fetchPart(shard, offset, content);
    return content;
  }

  async #fromCache(piece: Piece, from: number, target: Uint8Array, pass: number | null): Promise<boolean> {
    const { cache } = this.#options;
    if (!(await cache.read(piece.name, piece.bytes, from - piece.offset, target))) return false;
    this.counts.hits++;
    this.counts.hitBytes += target.length;
    cache.use(piece.name, this.#keyOf(piece, pass));
    return true;
  }

  async #piecesOf(shard: number, offset: number, bytes: number): Promise<Piece[]> {
    const { files, store } = this.#options;
    const index = await store.indexes.index(shard);
    let mark = this.#marks.get(shard);
    if (mark === undefined) {
      mark = fileMark(files[shard]!, this.#run);
      this.#marks.set(shard, mark);
    }
    return piecesOf(this.#sourceOf(shard), { shard, mark, index }, offset, bytes);
  }

  #keyOf(piece: Piece, pass: number | null): number {
    return keyOf(piece, this.#sourceOf(piece.shard), pass);
  }

  #sourceOf(shard: number): CutDataset {
    return this.#options.sources.findLast(({ firstShard }) => firstShard <= shard)!;
  }
}

function copyPart({ offset }: Piece, bytes: Uint8Array, from: number, target: Uint8Array): void {
  target.set(bytes.subarray(from - offset, from - offset + target.length));
}

/** Limits how many tasks run concurrently. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(turns: number) {
    this.#free = turns;
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
