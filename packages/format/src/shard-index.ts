/** The index of one shard in memory: columns, one row a sample, in the order of the shard's plan. */
export interface ShardIndex {
  readonly samples: number;
  readonly key: readonly string[];
  /** Path of the image below the packed folder; '' where it is not known. */
  readonly source: readonly string[];
  /** The sample's span in the shard, headers included, in bytes. */
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  /** By field name (`jpg`, `cls`, `seg.png`). */
  readonly fields: ReadonlyMap<string, FieldColumns>;
  /** Of the image as it is stored; 0 where there is none. */
  readonly width: Int32Array;
  readonly height: Int32Array;
  /** EXIF orientation 1..8; 1 where the file names none. */
  readonly orientation: Uint8Array;
  /** Class number; -1 where there is none. */
  readonly cls: Int32Array;
  /** Further columns that came with the labels, by name. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

export type ColumnValue = string | number | boolean | null;

/** One field of every sample: where its payload lies and its crc32. `offset` is -1 where a sample lacks the field. */
export interface FieldColumns {
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  readonly crc32: Uint32Array;
}
