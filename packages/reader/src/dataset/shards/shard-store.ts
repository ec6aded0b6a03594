import type { LoadedIndex } from '@shardtool/format';
import type { CropColumns } from '../crop-columns.js';
import type { ReadProfile } from './read-profiles.js';

/** Bytes of a shard, or of its crop index. */
export interface ByteRange {
  readonly shard: number;
  readonly file: 'shard' | 'crops';
  /** First byte. The size of the buffer determines how many bytes are read. */
  readonly offset: number;
  /** The pass that reads the bytes. A cache computes from it when they are needed next. */
  readonly pass?: number | undefined;
  /** True to bypass every cache, and to drop these bytes from the cache. */
  readonly isFresh?: boolean | undefined;
}

/** The bytes of shards. */
export interface ShardBytes {
  /** Fills `target` from `range.offset` on. Throws if the shard ends before that. */
  read(range: ByteRange, target: Uint8Array): Promise<void>;
  /** True if reading the same bytes again may give other bytes, because they come from a network or a cache. */
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

/** Cost of reading. Both values may change while a loader reads. */
export interface ReadingCosts {
  readonly profile: ReadProfile;
  /** Number of concurrent reads that is currently useful. */
  readonly parallel: number;
}

/** The source of blocks. Each member can be replaced by a wrapper of the same interface. */
export interface ShardStore {
  readonly bytes: ShardBytes;
  readonly indexes: ShardIndexes;
  readonly crops: CropIndexes;
  readonly costs: ReadingCosts;
}

/** Wraps a store so that crop indexes are ignored. */
export function withoutCrops(store: ShardStore): ShardStore {
  return { ...store, crops: { columns: async () => null } };
}

/** Wraps a store so that every call first runs `check`, which throws if the bytes are no longer needed. */
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
