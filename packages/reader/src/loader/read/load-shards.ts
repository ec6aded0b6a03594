import { inLanes, optionName, SampleSizeError, sentence } from '@shardtool/base';
import type { LoadedIndex } from '@shardtool/format';
import { consecutive } from '../../dataset/consecutive.js';
import type { CropColumns } from '../../dataset/crop-columns.js';
import type { ReadProfile } from '../../dataset/shards/read-profiles.js';
import type { ByteRange, ShardStore } from '../../dataset/shards/shard-store.js';
import type { Selection } from '../../selection/selection.js';
import { type Arena, SEGMENT_BYTES } from './arena.js';
import type { LoadedShard, ShardRows } from './block.js';
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

/** The part of a store that planning a load needs: no bytes are read. */
export type PlannedStore = Pick<ShardStore, 'indexes' | 'crops' | 'costs'>;

/** Parts of shards that are stored contiguously in memory, and their total size in bytes. */
export interface LoadedShards {
  readonly shards: ReadonlyMap<number, LoadedShard>;
  readonly bytes: number;
}

/** Plans how to load these rows. Reads indexes, but no shard. */
export async function planLoad(parts: Iterable<ShardRows>, store: PlannedStore): Promise<LoadedShards> {
  const shards = new Map<number, LoadedShard>();
  let bytes = 0;
  for (const { shard, rows } of withIndexesAhead(parts, store)) {
    const index = await store.indexes.index(shard);
    checkRows({ shard, rows }, index, store);
    const stretches = stretchesOf(index, rows, bytes);
    bytes += stretchBytes(stretches);
    const columns = await store.crops.columns(shard);
    const crops = columns && { columns, stretches: stretchesOf(columns, rowsWithCrops(columns, rows), bytes) };
    bytes += stretchBytes(crops?.stretches ?? []);
    shards.set(shard, { index, stretches, crops });
  }
  return { shards, bytes };
}

/** Throws SampleSizeError for a row that is too large to be read. */
export function checkRows(
  { shard, rows }: ShardRows,
  index: LoadedIndex,
  { indexes }: Pick<ShardStore, 'indexes'>,
): void {
  indexes.checkSizes(shard, index, rows);
  for (const row of rows) if (index.bytes[row]! > SEGMENT_BYTES) throw largerThanSegment(index, row);
}

/** A sample must fit one segment, however large the memory limit is. */
function largerThanSegment({ key, bytes }: LoadedIndex, row: number): SampleSizeError {
  const [name, size, limit] = [key[row]!, bytes[row]!, SEGMENT_BYTES];
  const message = sentence`Sample "${name}" has ${size} bytes, but a loader takes at most ${limit}. Exclude it with ${optionName('excludeKeys')}.`;
  return new SampleSizeError({ key: name, bytes: size, limit }, message);
}

/** Yields the parts unchanged. On slow storage, it requests the indexes of the next parts ahead. */
function* withIndexesAhead(parts: Iterable<ShardRows>, { indexes, costs }: PlannedStore): Generator<ShardRows> {
  const { plannedIndexes } = costs.profile;
  const waiting: ShardRows[] = [];
  for (const part of parts) {
    // An error is thrown when this part is planned.
    if (plannedIndexes > 0) indexes.index(part.shard).catch(() => {});
    waiting.push(part);
    if (waiting.length > plannedIndexes) yield waiting.shift()!;
  }
  yield* waiting;
}

function rowsWithCrops({ bytes }: CropColumns, rows: Uint32Array): Uint32Array {
  return rows.filter((row) => bytes[row]! > 0);
}

/** All rows of a selection, shard by shard. `samples[k]` is the number of samples of shard k. */
export function* selectedRows(samples: ArrayLike<number>, selection: Selection): Generator<ShardRows, undefined> {
  for (let shard = 0; shard < samples.length; shard++) {
    if (selection.counts[shard] === 0) continue;
    yield selectedOf(selection, shard, samples[shard]!);
  }
}

/** The selected rows of a shard with this number of samples. */
export function selectedOf(selection: Selection, shard: number, samples: number): ShardRows {
  return { shard, rows: selection.rows(shard) ?? consecutive(0, samples) };
}

/** A sample that was planned to be loaded, by its shard and its row in it. */
export interface LoadedSample {
  readonly shard: number;
  readonly row: number;
}

/** The target of a load, and the pass that it is for. */
export interface LoadTarget {
  readonly store: ShardStore;
  readonly arena: Arena;
  /** Offset in the arena at which the load begins. */
  readonly place: number;
  readonly pass?: number;
}

/** Reads some of the planned samples into their places, concurrently. When it throws, no read is in progress. */
export async function loadSamples(
  samples: readonly LoadedSample[],
  shards: LoadedShards['shards'],
  { store, arena, place, pass }: LoadTarget,
): Promise<void> {
  const read = (range: ByteRange, stretches: readonly Stretch[], bytes: number): Promise<void> =>
    store.bytes.read(range, arena.view(place + placeWithin(stretches, range.offset), bytes));
  const reads = samples.flatMap(({ shard, row }) => {
    const { index, stretches, crops } = shards.get(shard)!;
    const offset = index.offset[row]!;
    const bytes = index.bytes[row]!;
    const ofShard = bytes === 0 ? [] : [read({ shard, file: 'shard', offset, pass }, stretches, bytes)];
    if (crops === null || crops.columns.bytes[row] === 0) return ofShard;
    const { columns } = crops;
    const range = { shard, file: 'crops', offset: columns.offset[row]!, pass } as const;
    return [...ofShard, read(range, crops.stretches, columns.bytes[row]!)];
  });
  for (const result of await Promise.allSettled(reads)) if (result.status === 'rejected') throw result.reason;
}

/**
 * Reads the planned ranges into the arena. After an error, no read is in progress. `samples` are already in memory. They
 * are not written again, because their bytes may be in use.
 */
export async function load(
  shards: LoadedShards['shards'],
  target: LoadTarget,
  samples: readonly LoadedSample[] = [],
): Promise<void> {
  const { profile } = target.store.costs;
  const reads = readsOfShards(shards, profile, samples);
  if (reads.length === 1) return readInto(reads[0]!, target);
  await inLanes(reads, profile.blockReads, (read) => readInto(read, target));
}

interface ShardRead extends StretchRead {
  readonly shard: number;
  readonly file: ByteRange['file'];
}

function readsOfShards(
  shards: LoadedShards['shards'],
  profile: ReadProfile,
  samples: readonly LoadedSample[],
): ShardRead[] {
  const reads: ShardRead[] = [];
  for (const [shard, { index, stretches, crops }] of shards) {
    const rows = samples.filter((sample) => sample.shard === shard).map(({ row }) => row);
    const left = stretchesWithout(stretches, spansOf(index, rows));
    const leftCrops = crops && stretchesWithout(crops.stretches, spansOf(crops.columns, rows));
    for (const read of readsOf(left, profile)) reads.push({ shard, file: 'shard', ...read });
    for (const read of readsOf(leftCrops ?? [], profile)) reads.push({ shard, file: 'crops', ...read });
  }
  return reads;
}

function spansOf({ offset, bytes }: RowSpans, rows: readonly number[]): Span[] {
  return rows.map((row) => ({ offset: offset[row]!, bytes: bytes[row]! }));
}

async function readInto(read: ShardRead, { store, arena, place, pass }: LoadTarget): Promise<void> {
  const { shard, file, offset, bytes, stretches } = read;
  if (bytes === 0) return;
  const range = { shard, file, offset, pass };
  if (stretches.length === 1) return store.bytes.read(range, arena.view(place + stretches[0]!.at, bytes));
  // Reading threads write to shared memory only.
  const { isSlow } = store.costs.profile;
  const buffer = isSlow ? new Uint8Array(new SharedArrayBuffer(bytes)) : new Uint8Array(bytes);
  await store.bytes.read(range, buffer);
  for (const stretch of stretches) {
    const at = stretch.offset - offset;
    arena.view(place + stretch.at, stretch.bytes).set(buffer.subarray(at, at + stretch.bytes));
  }
}
