import { open } from 'node:fs/promises';
import type { LoadedIndex } from '@shardtool/format';
import type { CacheFolder, Claim } from '@shardtool/storage';
import type { CropColumns } from '../../dataset/crop-columns.js';
import type { ShardFiles } from '../../dataset/shard-files.js';
import type { ShardStore } from './load-shards.js';
import { type CutDataset, keyOf, marginOf, type Piece, piecesOf } from './pieces.js';

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

/** A piece that is being fetched. */
interface Fetching {
  readonly bytes: Promise<Uint8Array>;
  /** Resolves when it is in its file, or not going to be. */
  readonly settled: Promise<void>;
}

/**
 * The shards of a dataset behind a cache of pieces: of chunks as units the chunk's own bytes, else stretches of the shard.
 * What is going to be kept is fetched whole; what is not, is fetched as it is asked for.
 */
export class CachedStore implements ShardStore {
  readonly counts: CacheCounts = { hits: 0, hitBytes: 0 };
  readonly #options: CachedStoreOptions;
  readonly #turns = new Turns(PIECES_AT_ONCE);
  /** Pieces that are being fetched by this process, until they are settled. */
  readonly #fetching = new Map<string, Fetching>();

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
      cache.drop(name);
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
      const fetching = this.#fetching.get(name);
      if (fetching !== undefined) return copyPart(piece, await fetching.bytes, from, target);
      if (cache.isBeingWritten(name)) {
        await cache.whenWritten(name);
        continue;
      }
      const key = this.#keyOf(piece, pass);
      const margin = marginOf(piece, this.#sourceOf(piece.shard), pass, target.length);
      const claim = cache.claim(name, piece.bytes, key + margin);
      if (claim !== null) {
        return copyPart(piece, await this.#begin(piece, claim, key), from, target);
      }
      // It may have come between the look for its file and the claim: then it is not fetched once more.
      if (!cache.has(name) && !cache.isBeingWritten(name)) break;
    }
    return files.read(shard, from, target);
  }

  /** All of a piece. It is on its way into the cache then; whoever wants it meanwhile has it from here. */
  #begin(piece: Piece, claim: Claim, key: number): Promise<Uint8Array> {
    const { cache } = this.#options;
    const bytes = this.#fetch(piece);
    const settled = bytes
      .then(
        (content) => cache.write(claim, content, key),
        () => cache.giveBack(claim),
      )
      .then(() => {
        this.#turns.give();
        this.#fetching.delete(piece.name);
      });
    this.#fetching.set(piece.name, { bytes, settled });
    return bytes;
  }

  async #fetch({ shard, offset, bytes }: Piece): Promise<Uint8Array> {
    await this.#turns.take();
    const content = new Uint8Array(new SharedArrayBuffer(bytes));
    await this.#options.files.read(shard, offset, content);
    return content;
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

  async #piecesOf(shard: number, offset: number, bytes: number): Promise<Piece[]> {
    const { files } = this.#options;
    const index = await files.index(shard);
    return piecesOf(this.#sourceOf(shard), { shard, bytes: files.files[shard]!.bytes, index }, offset, bytes);
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
