import { randomUUID } from 'node:crypto';
import type { LoadedIndex } from '@shardtool/format';
import type { CacheFolder } from '@shardtool/storage';
import type { CropColumns } from '../../dataset/crop-columns.js';
import type { ShardFiles } from '../../dataset/shard-files.js';
import type { ShardStore } from './load-shards.js';
import { type CutDataset, fileMark, keyOf, marginOf, type Piece, piecesOf } from './pieces.js';

/** Pieces that are in memory on their way to the cache, at most. */
const PIECES_AT_ONCE = 16;
/** A piece that comes and goes, or cannot be opened, is looked for so often; then its bytes are fetched without it. */
const MOST_LOOKS = 3;

export interface CachedStoreOptions {
  readonly files: ShardFiles;
  readonly cache: CacheFolder;
  /** In the order of their shards. */
  readonly sources: readonly CutDataset[];
}

export interface CacheCounts {
  hits: number;
  hitBytes: number;
}

/** A piece that is being claimed and fetched. */
interface Fetching {
  /** Null if it was not claimed: it is to be read past the cache, or another process has it by now. */
  readonly bytes: Promise<Uint8Array | null>;
  /** Resolves when it is in its file, or not going to be. */
  readonly settled: Promise<void>;
}

/**
 * The shards of a dataset behind a cache of pieces: of chunks as units the chunk's own bytes, else stretches of the shard.
 * What is going to be kept is fetched whole; what is not, is fetched as it is asked for. So is what another process takes too
 * long to fetch.
 */
export class CachedStore implements ShardStore {
  readonly counts: CacheCounts = { hits: 0, hitBytes: 0 };
  readonly #options: CachedStoreOptions;
  readonly #turns = new Turns(PIECES_AT_ONCE);
  /** Pieces that are being fetched by this process, until they are settled. */
  readonly #fetching = new Map<string, Fetching>();
  /** By shard; see {@link fileMark}. */
  readonly #marks = new Map<number, string>();
  /** A version for files of which nothing says one: no other process, and no later one, finds their pieces. */
  readonly #run = randomUUID();

  constructor(options: CachedStoreOptions) {
    this.#options = options;
  }

  get costs() {
    return this.#options.files.costs;
  }

  get parallel(): number {
    return this.#options.files.parallel;
  }

  index(shard: number): Promise<LoadedIndex> {
    return this.#options.files.index(shard);
  }

  checkSizes(shard: number, index: LoadedIndex, rows: Iterable<number>): void {
    this.#options.files.checkSizes(shard, index, rows);
  }

  crops(shard: number): Promise<CropColumns | null> {
    return this.#options.files.crops(shard);
  }

  readCrops(shard: number, offset: number, target: Uint8Array): Promise<void> {
    return this.#options.files.readCrops(shard, offset, target);
  }

  read(shard: number, offset: number, target: Uint8Array): Promise<void> {
    return this.#read(shard, offset, target, null);
  }

  /** What has kept these bytes wrong is dropped: whoever needs the piece next fetches it. */
  async readAgain(shard: number, offset: number, target: Uint8Array): Promise<void> {
    const { files, cache } = this.#options;
    for (const { name } of await this.#piecesOf(shard, offset, target.length)) {
      await this.#fetching.get(name)?.settled;
      await cache.drop(name);
    }
    await files.read(shard, offset, target);
  }

  /** The same shards, for the blocks of a pass: it says when what they read is needed next. */
  forPass(pass: number): ShardStore {
    const store = this;
    return {
      get costs() {
        return store.costs;
      },
      get parallel() {
        return store.parallel;
      },
      index: (shard) => store.index(shard),
      checkSizes: (shard, index, rows) => store.checkSizes(shard, index, rows),
      read: (shard, offset, target) => store.#read(shard, offset, target, pass),
      readAgain: (shard, offset, target) => store.readAgain(shard, offset, target),
      crops: (shard) => store.crops(shard),
      readCrops: (shard, offset, target) => store.readCrops(shard, offset, target),
    };
  }

  /** Resolves when nothing is on its way into the cache. */
  async settle(): Promise<void> {
    while (this.#fetching.size > 0) await Promise.all(Array.from(this.#fetching.values(), ({ settled }) => settled));
  }

  async #read(shard: number, offset: number, target: Uint8Array, pass: number | null): Promise<void> {
    const { files } = this.#options;
    const parts: Promise<void>[] = [];
    let at = offset;
    const end = offset + target.length;
    const direct = (to: number): void => {
      if (to > at) parts.push(files.read(shard, at, target.subarray(at - offset, to - offset)));
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

  async #readPart(piece: Piece, from: number, target: Uint8Array, pass: number | null): Promise<void> {
    const { cache, files } = this.#options;
    const { name, shard } = piece;
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      if (await this.#fromCache(piece, from, target, pass)) return;
      const begun = this.#fetching.get(name);
      if (begun === undefined && cache.isBeingWritten(name)) {
        if (!(await cache.whenWritten(name))) break;
        continue;
      }
      const bytes = await (begun ?? this.#begin(piece, target.length, pass)).bytes;
      if (bytes !== null) return copyPart(piece, bytes, from, target);
      // It may have come between the look for its file and the claim: then it is not fetched once more.
      if (!cache.has(name) && !cache.isBeingWritten(name)) break;
    }
    return files.read(shard, from, target);
  }

  /** Claims a piece and fetches all of it; `wanted` bytes of it are wanted now. Whoever wants it meanwhile has it from here. */
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
    await this.#options.files.read(shard, offset, content);
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
    const { files } = this.#options;
    const index = await files.index(shard);
    let mark = this.#marks.get(shard);
    if (mark === undefined) {
      mark = fileMark(files.files[shard]!, this.#run);
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

/** So many at once; the others wait for their turn. */
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
