import type { LoadedIndex } from '@shardtool/format';
import type { CropColumns } from './crop-columns.js';
import type { ReadProfile } from './read-profiles.js';

/** Bytes of a shard, or of its crop index. */
export interface ByteRange {
  readonly shard: number;
  readonly file: 'shard' | 'crops';
  /** First byte. How many bytes are read follows from the buffer. */
  readonly offset: number;
  /** The pass that reads the bytes: a cache uses it to tell when they are needed next. */
  readonly pass?: number | undefined;
  /** Skip every cache, and drop what a cache has kept of these bytes. */
  readonly isFresh?: boolean | undefined;
}

/** The bytes of shards. */
export interface ShardBytes {
  /** Fills `target` from `range.offset` on. Throws if the shard ends before that. */
  read(range: ByteRange, target: Uint8Array): Promise<void>;
  /** Reading bytes again may give other bytes: they come over a network, or from a cache. */
  readonly mayDiffer: boolean;
}

/** The indexes of shards. */
export interface ShardIndexes {
  index(shard: number): Promise<LoadedIndex>;
  /** Throws `SampleSizeError` for a row of the shard that has more bytes than may be read. */
  checkSizes(shard: number, index: LoadedIndex, rows: Iterable<number>): void;
}

/** The crop indexes of shards. */
export interface CropIndexes {
  /** Columns of the shard's crop index. Null: there is no crop index, or it is not used. */
  columns(shard: number): Promise<CropColumns | null>;
}

/** What reading costs. Both values may change while a loader reads. */
export interface ReadingCosts {
  readonly profile: ReadProfile;
  /** Number of concurrent reads that is worth having now. */
  readonly parallel: number;
}

/** Where blocks come from. Each part can be replaced by a wrapper with the same single job. */
export interface ShardStore {
  readonly bytes: ShardBytes;
  readonly indexes: ShardIndexes;
  readonly crops: CropIndexes;
  readonly costs: ReadingCosts;
}

/** The same store, with crop indexes ignored. */
export function withoutCrops(store: ShardStore): ShardStore {
  return { ...store, crops: { columns: async () => null } };
}

/** The same store; every call first runs `check`, which throws once the bytes are no longer wanted. */
export function whileWanted(store: ShardStore, check: () => void): ShardStore {
  const { bytes, indexes, crops } = store;
  const guarded =
    <Inputs extends unknown[], Result>(call: (...inputs: Inputs) => Promise<Result>) =>
    async (...inputs: Inputs): Promise<Result> => {
      check();
      return call(...inputs);
    };
  return {
    ...store,
    bytes: {
      read: guarded((range, target) => bytes.read(range, target)),
      get mayDiffer() {
        return bytes.mayDiffer;
      },
    },
    indexes: {
      index: guarded((shard) => indexes.index(shard)),
      checkSizes: (shard, index, rows) => indexes.checkSizes(shard, index, rows),
    },
    crops: { columns: guarded((shard) => crops.columns(shard)) },
  };
}
