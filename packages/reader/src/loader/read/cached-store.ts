import { open } from 'node:fs/promises';
import type { ShardIndex } from '@shardtool/format';
import type { CacheFolder, Claim } from '@shardtool/storage';
import type { CropColumns } from '../../dataset/crop-columns.js';
import type { ShardFiles } from '../../dataset/shard-files.js';
import type { EpochOrder } from '../../order/epoch-order.js';
import { horizonOf, nextUse, type Readers } from '../../order/next-use.js';
import { firstNumbers, lastAtMost, type Unit } from '../../order/units.js';
import type { Selection } from '../../selection/selection.js';
import type { LoaderOrder } from '../setup/order.js';
import type { ShardStore } from './load-shards.js';

/** Of a shard as a unit so many bytes are kept together: a stream walks through them from front to back. */
const STRETCH_BYTES = 8 << 20;
/** Pieces that are in memory on their way to the cache, at most. */
const PIECES_AT_ONCE = 16;
/** A piece that comes and goes, or cannot be opened, is looked for so often; then its bytes are fetched without it. */
const MOST_LOOKS = 3;
/** Samples that are all in memory are needed when the next run begins, which nobody knows. */
const SOME_DAY = 14_000_000_000;

export interface CachedStoreOptions {
  readonly files: ShardFiles;
  readonly cache: CacheFolder;
  /** Of the dataset: what is kept is found again by it, and by it alone. */
  readonly identity: string;
  readonly unit: Unit;
  readonly blockSamples: number;
  /** Null: nobody knows when what was fetched is needed again, and what came first stays. */
  readonly readers: Readers | null;
  selection(pass: number): Selection;
}

/** A part of a shard that is kept as a file. */
interface Piece {
  readonly name: string;
  readonly shard: number;
  readonly offset: number;
  readonly bytes: number;
  /** Rows that begin in it. */
  readonly from: number;
  readonly to: number;
}

export interface CacheCounts {
  hits: number;
  hitBytes: number;
}

/**
 * The shards of a dataset behind a cache of pieces: of chunks as units the chunk's own bytes, else stretches of the shard.
 * What is going to be kept is fetched whole; what is not, is fetched as it is asked for.
 */
export class CachedStore implements ShardStore {
  readonly counts: CacheCounts = { hits: 0, hitBytes: 0 };
  readonly #options: CachedStoreOptions;
  readonly #prefix: string;
  readonly #turns = new Turns(PIECES_AT_ONCE);
  /** Pieces that are being fetched by this process, until they are in their file or not going to be. */
  readonly #fetching = new Map<string, Promise<Uint8Array>>();
  #writing = 0;

  constructor(options: CachedStoreOptions) {
    this.#options = options;
    this.#prefix = options.identity.slice(0, 24);
  }

  get costs() {
    return this.#options.files.costs;
  }

  get parallel(): number {
    return this.#options.files.parallel;
  }

  index(shard: number): Promise<ShardIndex> {
    return this.#options.files.index(shard);
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
      read: (shard, offset, target) => store.#read(shard, offset, target, pass),
      crops: (shard) => store.crops(shard),
      readCrops: (shard, offset, target) => store.readCrops(shard, offset, target),
    };
  }

  /** Resolves when nothing is on its way into the cache. */
  async settle(): Promise<void> {
    while (this.#fetching.size > 0 || this.#writing > 0) {
      await Promise.allSettled(this.#fetching.values());
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
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
      const fetching = this.#fetching.get(name);
      if (fetching !== undefined) return copyPart(piece, await fetching, from, target);
      if (cache.isBeingWritten(name)) {
        await cache.whenWritten(name);
        continue;
      }
      const key = this.#keyOf(piece, pass);
      const claim = cache.claim(name, piece.bytes, key);
      if (claim !== null) {
        const fetched = this.#fetch(piece, claim, key);
        this.#fetching.set(name, fetched);
        return copyPart(piece, await fetched, from, target);
      }
      // It may have come between the look for its file and the claim: then it is not fetched once more.
      if (!cache.has(name) && !cache.isBeingWritten(name)) break;
    }
    return files.read(shard, from, target);
  }

  /** All of a piece. It is on its way into the cache then; whoever wants it meanwhile has it from here. */
  async #fetch(piece: Piece, claim: Claim, key: number): Promise<Uint8Array> {
    const { cache, files } = this.#options;
    const done = (): void => {
      this.#fetching.delete(piece.name);
    };
    await this.#turns.take();
    const bytes = new Uint8Array(new SharedArrayBuffer(piece.bytes));
    try {
      await files.read(piece.shard, piece.offset, bytes);
    } catch (error) {
      cache.giveBack(claim);
      this.#turns.give();
      done();
      throw error;
    }
    this.#writing++;
    void cache.write(claim, bytes, key).finally(() => {
      this.#writing--;
      this.#turns.give();
      done();
    });
    return bytes;
  }

  async #fromCache(piece: Piece, from: number, target: Uint8Array, pass: number | null): Promise<boolean> {
    const { cache } = this.#options;
    const handle = await open(cache.pathOf(piece.name), 'r').catch(() => null);
    if (handle === null) return false;
    try {
      let done = 0;
      while (done < target.length) {
        const at = from - piece.offset + done;
        const { bytesRead } = await handle.read(target, done, target.length - done, at);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      if (done < target.length) {
        cache.drop(piece.name);
        return false;
      }
    } catch {
      return false;
    } finally {
      await handle.close();
    }
    this.counts.hits++;
    this.counts.hitBytes += target.length;
    cache.use(piece.name, this.#keyOf(piece, pass));
    return true;
  }

  /** When this machine needs the piece again, after `pass`. */
  #keyOf({ shard, from, to }: Piece, pass: number | null): number {
    const { unit, blockSamples, readers, selection } = this.#options;
    if (pass === null || readers === null || unit === 'sample') return SOME_DAY;
    const chosen = selection(pass);
    const rows = chosen.rows(shard);
    const first = firstNumbers(chosen.counts)[shard]!;
    // Under a selection rows have the numbers of their places among the chosen.
    const begin = rows === null ? from : lowerBound(rows, from);
    const end = rows === null ? to : lowerBound(rows, to);
    if (begin >= end) return Number.POSITIVE_INFINITY;
    if (unit === 'shard') return nextUse(readers, pass, first + begin, end - begin);
    let key = Number.POSITIVE_INFINITY;
    for (let at = begin; at < end; ) {
      const next = Math.min(end, (Math.floor(at / blockSamples) + 1) * blockSamples);
      key = Math.min(key, nextUse(readers, pass, first + at, next - at));
      at = next;
    }
    return key;
  }

  /** The pieces that have some of these bytes, rising. */
  async #piecesOf(shard: number, offset: number, bytes: number): Promise<Piece[]> {
    const { files, unit, blockSamples } = this.#options;
    const index = await files.index(shard);
    const size = files.files[shard]!.bytes;
    const rising = risingOffsets(index);
    const pieces: Piece[] = [];
    if (unit === 'chunk' && rising !== null) {
      const ends = (row: number) => index.offset[row]! + index.bytes[row]!;
      let chunk = Math.floor(Math.max(0, lastAtMost(rising, offset)) / blockSamples);
      for (; chunk * blockSamples < index.samples; chunk++) {
        const from = chunk * blockSamples;
        const to = Math.min(index.samples, from + blockSamples);
        const start = index.offset[from]!;
        if (start >= offset + bytes) break;
        const length = ends(to - 1) - start;
        const name = `${this.#prefix}.${shard}.c${blockSamples}.${chunk}`;
        pieces.push({ name, shard, offset: start, bytes: length, from, to });
      }
      return pieces;
    }
    for (let k = Math.floor(offset / STRETCH_BYTES); k * STRETCH_BYTES < offset + bytes; k++) {
      const start = k * STRETCH_BYTES;
      const length = Math.min(STRETCH_BYTES, size - start);
      const from = rising === null ? 0 : lowerBound(rising, start);
      const to = rising === null ? index.samples : lowerBound(rising, start + length);
      pieces.push({
        name: `${this.#prefix}.${shard}.s${STRETCH_BYTES}.${k}`,
        shard,
        offset: start,
        bytes: length,
        from,
        to,
      });
    }
    return pieces;
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

const risingOf = new WeakMap<ShardIndex, Float64Array | null>();

/** Where the samples begin, if they lie in the order of their rows. */
function risingOffsets(index: ShardIndex): Float64Array | null {
  let rising = risingOf.get(index);
  if (rising === undefined) {
    const { offset, bytes } = index;
    rising = offset.every((at, row) => row === 0 || at >= offset[row - 1]! + bytes[row - 1]!) ? offset : null;
    risingOf.set(index, rising);
  }
  return rising;
}

/** The first place whose value is at least `value`. */
function lowerBound(rising: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = rising.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rising[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The shards of a dataset behind a cache, for the ranks of this machine. */
export function cachedStore(
  dataset: Pick<CachedStoreOptions, 'files' | 'identity'> & { readonly bytes: number },
  order: Pick<LoaderOrder, 'unit' | 'blockSamples' | 'selection' | 'orderOf' | 'rank' | 'worldSize'>,
  cache: CacheFolder,
): CachedStore {
  const { unit, blockSamples, selection, orderOf, rank, worldSize } = order;
  const local = localRanks(rank, worldSize, process.env);
  const horizon = horizonOf(cache.maxBytes, (dataset.bytes * local.count) / worldSize);
  const orders = new Map<number, EpochOrder>();
  const { files, identity } = dataset;
  const common = { files, identity, cache, unit, blockSamples, selection };
  if (orderOf === undefined) return new CachedStore({ ...common, readers: null });
  const readers = {
    horizon,
    isLocal: (stream: number) => {
      const owner = stream % worldSize;
      return owner >= local.first && owner < local.first + local.count;
    },
    orderOf(pass: number) {
      let known = orders.get(pass);
      if (known === undefined) {
        known = orderOf(pass);
        orders.set(pass, known);
        const oldest = Math.min(...orders.keys());
        if (orders.size > horizon + 2) orders.delete(oldest);
      }
      return known;
    },
  };
  return new CachedStore({ ...common, readers });
}

/**
 * The ranks whose processes run on this machine: LOCAL_RANK and LOCAL_WORLD_SIZE (torchrun sets them) say how many, and
 * they follow each other. Without them each process looks at what it needs itself.
 */
export function localRanks(
  rank: number,
  worldSize: number,
  env: Readonly<Record<string, string | undefined>>,
): { readonly first: number; readonly count: number } {
  const place = Number(env.LOCAL_RANK ?? Number.NaN);
  const count = Number(env.LOCAL_WORLD_SIZE ?? Number.NaN);
  const first = rank - place;
  const isRight = place >= 0 && place < count && first >= 0 && first + count <= worldSize;
  return isRight ? { first, count } : { first: rank, count: 1 };
}
