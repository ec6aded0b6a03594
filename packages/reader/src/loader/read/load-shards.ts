import { inLanes, SampleSizeError } from '@shardtool/base';
import type { LoadedIndex } from '@shardtool/format';
import type { ReadCosts } from '@shardtool/storage';
import type { CropColumns } from '../../dataset/crop-columns.js';
import type { Selection } from '../../selection/selection.js';
import { type Arena, SEGMENT_BYTES } from './arena.js';
import { consecutive, type LoadedShard, type ShardRows } from './block.js';
import {
  placeWithin,
  type RowSpans,
  readsOf,
  type Span,
  type Stretch,
  type StretchRead,
  stretchBytes,
  stretchesOf,
  stretchesWithout,
} from './readers/stretches.js';

/** Where blocks come from: shards by number. */
export interface ShardStore {
  index(shard: number): Promise<LoadedIndex>;
  /** Fills `target` with the shard's bytes from `offset` on; throws where the file ends before. */
  read(shard: number, offset: number, target: Uint8Array): Promise<void>;
  /**
   * {@link read}, past whatever has kept these bytes, and that forgets them. Absent where the same disk would give the same
   * bytes again.
   */
  readonly readAgain?: ((shard: number, offset: number, target: Uint8Array) => Promise<void>) | undefined;
  /** Throws `SampleSizeError` for a row of the shard that has more bytes than are to be read. */
  checkSizes?(shard: number, index: LoadedIndex, rows: Iterable<number>): void;
  /** What reads cost here; without it they are those of a local disk. */
  readonly costs?: ReadCosts | undefined;
  /** Reads that are worth having under way now. */
  readonly parallel?: number | undefined;
  /** The same shards for the blocks of a pass, where it matters which it is. */
  forPass?(pass: number): ShardStore;
  /** What the shard's crop index has; null where it has none that can be used. */
  crops(shard: number): Promise<CropColumns | null>;
  /** The same as {@link read}, of the crop index. */
  readCrops(shard: number, offset: number, target: Uint8Array): Promise<void>;
}

/** What a plan of loads looks at. */
export type PlannedStore = Pick<ShardStore, 'index' | 'crops' | 'checkSizes' | 'parallel'>;

/** A store whose crop indexes are not looked at. */
export function withoutCrops(store: ShardStore): ShardStore {
  const { forPass } = store;
  return {
    ...(forPass !== undefined && { forPass: (pass: number) => withoutCrops(forPass.call(store, pass)) }),
    get costs() {
      return store.costs;
    },
    get parallel() {
      return store.parallel;
    },
    index: (shard) => store.index(shard),
    checkSizes: (shard, index, rows) => store.checkSizes?.(shard, index, rows),
    read: (shard, offset, target) => store.read(shard, offset, target),
    get readAgain() {
      return store.readAgain?.bind(store);
    },
    crops: async () => null,
    readCrops: (shard, offset, target) => store.readCrops(shard, offset, target),
  };
}

/** Parts of shards that lie in memory one behind the other: which, and how many bytes they take. */
export interface LoadedShards {
  readonly shards: ReadonlyMap<number, LoadedShard>;
  readonly bytes: number;
}

/** Reads of one block that are under way at once. */
const READS_AT_ONCE = 4;
const REMOTE_CONCURRENT_READS = 32;
const INDEXES_AHEAD = 32;

/** What it takes to load these rows: indexes are read, shards are not. */
export async function planLoad(parts: Iterable<ShardRows>, store: PlannedStore): Promise<LoadedShards> {
  const shards = new Map<number, LoadedShard>();
  let bytes = 0;
  for (const { shard, rows } of aheadOf(parts, store)) {
    const index = await store.index(shard);
    store.checkSizes?.(shard, index, rows);
    for (const row of rows) if (index.bytes[row]! > SEGMENT_BYTES) throw largerThanSegment(index, row);
    const stretches = stretchesOf(index, rows, bytes);
    bytes += stretchBytes(stretches);
    const columns = await store.crops(shard);
    const crops = columns && { columns, stretches: stretchesOf(columns, rowsWithCrops(columns, rows), bytes) };
    bytes += stretchBytes(crops?.stretches ?? []);
    shards.set(shard, { index, stretches, crops });
  }
  return { shards, bytes };
}

/** However much memory there is: a sample lies in one segment. */
function largerThanSegment({ key, bytes }: LoadedIndex, row: number): SampleSizeError {
  const [name, size, limit] = [key[row]!, bytes[row]!, SEGMENT_BYTES];
  const message = `Sample "${name}" has ${size} bytes, and a loader takes ${limit} at most; leave it out with excludeKeys.`;
  return new SampleSizeError({ key: name, bytes: size, limit }, message);
}

/** The same parts; where indexes take a while, those of the next are on their way. */
function* aheadOf(parts: Iterable<ShardRows>, store: PlannedStore): Generator<ShardRows, undefined> {
  const isSlow = (store.parallel ?? 0) > READS_AT_ONCE;
  const waiting: ShardRows[] = [];
  for (const part of parts) {
    // What goes wrong is heard when its turn comes.
    if (isSlow) store.index(part.shard).catch(() => {});
    waiting.push(part);
    if (!isSlow || waiting.length > INDEXES_AHEAD) yield waiting.shift()!;
  }
  yield* waiting;
}

function rowsWithCrops({ bytes }: CropColumns, rows: Uint32Array): Uint32Array {
  return rows.filter((row) => bytes[row]! > 0);
}

/** All rows of a selection, shard by shard. `samples[k]` is how many shard k has. */
export function* selectedRows(samples: ArrayLike<number>, selection: Selection): Generator<ShardRows, undefined> {
  for (let shard = 0; shard < samples.length; shard++) {
    if (selection.counts[shard] === 0) continue;
    yield selectedOf(selection, shard, samples[shard]!);
  }
}

/** The selected rows of a shard that has so many samples. */
export function selectedOf(selection: Selection, shard: number, samples: number): ShardRows {
  return { shard, rows: selection.rows(shard) ?? consecutive(0, samples) };
}

/** A sample of what is loaded, by its shard and its row there. */
export interface LoadedSample {
  readonly shard: number;
  readonly row: number;
}

/** Reads single samples of what was planned into their places, all at once. When it throws, no read is under way any more. */
export async function loadSamples(
  samples: readonly LoadedSample[],
  shards: LoadedShards['shards'],
  place: number,
  store: ShardStore,
  arena: Arena,
): Promise<void> {
  const placeOf = (stretches: readonly Stretch[], offset: number, bytes: number): Uint8Array =>
    arena.view(place + placeWithin(stretches, offset), bytes);
  const reads = samples.flatMap(({ shard, row }) => {
    const { index, stretches, crops } = shards.get(shard)!;
    const offset = index.offset[row]!;
    const bytes = index.bytes[row]!;
    const ofShard = bytes === 0 ? [] : [store.read(shard, offset, placeOf(stretches, offset, bytes))];
    if (crops === null || crops.columns.bytes[row] === 0) return ofShard;
    const at = crops.columns.offset[row]!;
    return [...ofShard, store.readCrops(shard, at, placeOf(crops.stretches, at, crops.columns.bytes[row]!))];
  });
  for (const result of await Promise.allSettled(reads)) if (result.status === 'rejected') throw result.reason;
}

/**
 * Reads what was planned into the arena from `place` on. When it throws, no read is under way any more. Nothing is written
 * over `samples`, which are there: somebody may have checked their bytes, and use them now.
 */
export async function load(
  shards: LoadedShards['shards'],
  place: number,
  store: ShardStore,
  arena: Arena,
  samples: readonly LoadedSample[] = [],
): Promise<void> {
  const reads = readsOfShards(shards, store.costs, samples);
  if (reads.length === 1) return readInto(reads[0]!, place, store, arena);
  // The store itself says how many of them are under way.
  const atOnce = (store.costs?.parallel ?? 0) > READS_AT_ONCE ? REMOTE_CONCURRENT_READS : READS_AT_ONCE;
  await inLanes(reads, atOnce, (read) => readInto(read, place, store, arena));
}

interface ShardRead extends StretchRead {
  readonly shard: number;
  /** Of the shard itself, or of its crop index. */
  readonly from: 'shard' | 'crops';
}

function readsOfShards(
  shards: LoadedShards['shards'],
  costs: ReadCosts | undefined,
  samples: readonly LoadedSample[],
): ShardRead[] {
  const reads: ShardRead[] = [];
  for (const [shard, { index, stretches, crops }] of shards) {
    const rows = samples.filter((sample) => sample.shard === shard).map(({ row }) => row);
    const left = stretchesWithout(stretches, spansOf(index, rows));
    const leftCrops = crops && stretchesWithout(crops.stretches, spansOf(crops.columns, rows));
    for (const read of readsOf(left, costs)) reads.push({ shard, from: 'shard', ...read });
    for (const read of readsOf(leftCrops ?? [], costs)) reads.push({ shard, from: 'crops', ...read });
  }
  return reads;
}

function spansOf({ offset, bytes }: RowSpans, rows: readonly number[]): Span[] {
  return rows.map((row) => ({ offset: offset[row]!, bytes: bytes[row]! }));
}

async function readInto(read: ShardRead, place: number, store: ShardStore, arena: Arena): Promise<void> {
  const { shard, offset, bytes, stretches, from } = read;
  if (bytes === 0) return;
  const fill = (target: Uint8Array): Promise<void> =>
    from === 'shard' ? store.read(shard, offset, target) : store.readCrops(shard, offset, target);
  if (stretches.length === 1) return fill(arena.view(place + stretches[0]!.at, bytes));
  // Threads read into shared memory alone.
  const isSlow = (store.costs?.parallel ?? 0) > READS_AT_ONCE;
  const buffer = isSlow ? new Uint8Array(new SharedArrayBuffer(bytes)) : new Uint8Array(bytes);
  await fill(buffer);
  for (const stretch of stretches) {
    const at = stretch.offset - offset;
    arena.view(place + stretch.at, stretch.bytes).set(buffer.subarray(at, at + stretch.bytes));
  }
}
