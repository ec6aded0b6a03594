import type { DamagedShardError } from '@shardtool/base';
import type { ColumnValue } from '../sample/label-column.js';
import type { FieldSize, SampleRules } from '../sample/sample-check.js';
import type { Source } from '../source.js';
import type { SampleValues, Table, TableNames } from './columns/table.js';
import type { LayoutName, OutputLayoutName, TableLayoutName, WrittenLayoutName } from './registry.js';

/** Where a field of a sample is in its shard: `offset` and `bytes` of the payload alone. */
export interface FieldPosition {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  /**
   * For msgpack: the bytes are not the payload but a value (an integer, for `cls`) whose text is the payload.
   * `fieldPayload` returns the payload in either case. Absent means false.
   */
  readonly msgpack?: boolean;
  /** crc32 of the payload, if the layout stores it. */
  readonly crc32?: number;
  /** Why the payload is lost; absent if it is not. {@link crc32} then does not match the bytes at its position. */
  readonly lost?: DamagedShardError;
}

/** Where a sample is in its shard: the smallest range that contains all of it, headers included. */
export interface SamplePosition {
  readonly key: string;
  readonly offset: number;
  readonly bytes: number;
  readonly fields: readonly FieldPosition[];
  /** The class number, if the layout stores it as a separate value; absent if a field `cls` has it. */
  readonly cls?: number;
  /** Other single values of a sample that the layout stores: they become label columns of the index. */
  readonly labels?: ReadonlyMap<string, ColumnValue>;
}

/** A field whose payload arrives in pieces, with `bytes` in total. */
export interface FieldInPieces extends FieldSize {
  pieces(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/** A finished shard, and the position of everything in it, in the order in which samples were committed. */
export interface FinishedShard {
  /** Size of the file, in bytes. */
  readonly bytes: number;
  /** crc32 of the whole file. */
  readonly crc32: number;
  /** Per sample: offset and length of its range. */
  readonly sampleOffset: Float64Array;
  readonly sampleBytes: Float64Array;
  /** Per field, with the samples in order and each sample's fields in the order in which they were begun: payload offset. */
  readonly payloadOffset: Float64Array;
  /**
   * Per field, if any is stored as a msgpack value (see {@link FieldPosition}): 1 for those that are, and how many
   * bytes each takes in the file. Absent if every payload is stored unchanged.
   */
  readonly payloadMsgpack?: Uint8Array;
  readonly payloadBytes?: Float64Array;
}

/**
 * Writes one shard front to back. Synchronous, because it runs in a worker that has nothing else to do. Payloads are
 * read directly into the write buffer, so that no byte is copied unnecessarily.
 */
export interface ShardWriter {
  /** Sets the values of the next sample other than its payloads. Absent if a layout stores only payloads. */
  describe?(values: SampleValues): void;
  /**
   * Lays out the next sample in the write buffer and returns a view for each payload, in the order of `fields` (sorted
   * by name by the caller). The caller fills them, then calls {@link commit} or {@link discard}.
   */
  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[];
  /**
   * Completes the current sample. `payloadCrc32` has the crc32 of each payload at its source. The checksum of the file
   * is combined from these, so it is right only if the payloads reach the file unchanged. Throws `WriteCheckError` for
   * a payload that is stored as another value and has changed in memory.
   */
  commit(payloadCrc32?: readonly number[]): void;
  /** Drops the current sample; nothing of it is written. */
  discard(): void;
  /**
   * Writes a whole sample while it holds only one piece, and returns the crc32 of each payload. If it throws (the
   * errors of the pieces), nothing of the sample remains. Absent if a layout has to hold a whole sample.
   */
  writeInPieces?(key: string, fields: readonly FieldInPieces[]): Promise<readonly number[]>;
  /** Writes the rest. The file descriptor stays open; its owner flushes it to disk. */
  finish(): FinishedShard;
}

/** Called for a file in a shard that belongs to no sample: in tar, a dotfile, a name without a dot, or a link that is not followed. */
export type OnSkipped = (name: string, offset: number, kind?: 'link') => void;

/**
 * Which columns (features) of other software's shards are the image, the class and the key of a sample. Omitted ones
 * are found by their usual names; without a key, keys are the shard's name and a number.
 */
export interface ChosenColumns {
  readonly image?: string | undefined;
  readonly label?: string | undefined;
  readonly key?: string | undefined;
}

/** How to treat links in an archive: skip them, or read the file in the archive that they point to. */
export type LinkChoice = 'skip' | 'follow';

/** How to read shards of other software, if their content does not decide it. */
export interface ReadChoice extends ChosenColumns {
  readonly links?: LinkChoice | undefined;
  /** One of the splits inside the files: see {@link PartedShard.splits}. */
  readonly split?: string | undefined;
}

/**
 * Called for a sample that has changed, if the walk can continue after it, with its key if known. Without this callback
 * the walk ends there.
 */
export type OnDamaged = (error: DamagedShardError, key?: string) => void;

/** One kind of shard file, as a set of functions. A read-only layout has no writer. */
export interface ShardLayout {
  readonly name: LayoutName;
  /** The extension with its dot: `.tar`. */
  readonly extension: string;
  /** The shard is a folder with that extension, and this is the file in it: `data.mdb`. Absent if the shard is a file. */
  readonly innerFile?: string;
  /** Shards are stored in this subfolder of their dataset's folder. Absent: in the dataset's folder itself. */
  readonly shardFolder?: string;
  /** A sample is stored as its image only: the writer takes exactly one field. Absent means false. */
  readonly imageOnly?: boolean;
  /**
   * A dataset of such shards is opened from their headers alone, which have classes and labels. Sizes of images and
   * checksums are known once `shardtool index` has read the payloads. Absent: opening shards without indexes reads all
   * of them.
   */
  readonly isOpenedByWalk?: boolean;
  /**
   * Opens a writer on a new, empty file. `shard` is its final name, for messages. It throws `SampleSizeError` for a
   * sample of more than `maxSampleBytes`, all payloads together. `samples` is the number of samples to come, if known.
   */
  createWriter?(fd: number, shard: string, maxSampleBytes?: number, samples?: number): ShardWriter;
  /**
   * Walks a shard by its headers and yields its samples in the order of the file, some hundreds at a time. Throws an
   * error with shard and offset at the first violation of the layout.
   */
  samples(source: Source, onSkipped?: OnSkipped, onDamaged?: OnDamaged): AsyncGenerator<readonly SamplePosition[]>;
  /**
   * Like {@link samples}, without checking payloads against the layout's own checksums. Absent: {@link samples} does
   * not check them either.
   */
  headers?(source: Source): AsyncGenerator<readonly SamplePosition[]>;
  /**
   * Recovers a damaged shard: yields every sample that can be found, also after damage, and never throws for damaged
   * data. A key may occur twice, with some of its fields each time, and the results may be damaged. Absent if the
   * layout has no way to find samples after damage.
   */
  salvage?(source: Source): AsyncGenerator<SamplePosition>;
  /**
   * The shard as if its payloads were stored plainly, for layouts that deflate them or encode them in pages. All
   * positions that {@link samples} yields then refer to this view, which is what it is given; every read of a payload
   * goes through it, so that only plain bytes reach the arena. It owns `source` and closes it. See {@link PieceSource}.
   */
  expand?(source: Source): Promise<Source>;
  /** The same layout with columns chosen by name. Absent if its shards have no columns, or identify them themselves. */
  choosing?(columns: ChosenColumns): ShardLayout;
  /** The same layout with only the samples of one split. Absent if a shard never contains several splits. */
  ofSplit?(split: string): ShardLayout;
  /** The same layout with links followed. Absent if its shards have no links. */
  readonly following?: ShardLayout;
  /**
   * Decompresses a shard that is compressed as a whole, so that its samples can be read individually; returns any other
   * shard unchanged. Only conversion does this. It owns `source`.
   */
  unpack?(source: Source): Promise<Source>;
  /**
   * Reads shards in parts, as if each part were a shard. For layouts whose large shards must be read almost completely
   * to find out where everything is. Shards that one reader opens share memory.
   */
  partReader?(): PartReader;
}

/** Opens a shard from the metadata at one end of it. `open` opens its file. */
export type PartReader = (open: () => Promise<Source>) => Promise<PartedShard>;

/** A shard in parts that are found and read one by one. */
export interface PartedShard {
  /** Names of the classes, if the shard has them. Another shard may have others, or another order. */
  readonly classes: readonly string[];
  /** The splits of its samples, if the shard has them. */
  readonly splits?: readonly string[];
  readonly parts: readonly ShardPart[];
}

/** A run of samples of a shard. */
export interface ShardPart {
  /** The number in the shard of its first sample, and how many it has. */
  readonly firstSample: number;
  readonly samples: number;
  /** Size of its payloads in the file. */
  readonly bytes: number;
  /** The part as {@link ShardLayout.expand} shows a shard. */
  open(): Promise<Source>;
  /** Yields the same as {@link ShardLayout.samples}, with offsets in the part. */
  positions(): AsyncGenerator<readonly SamplePosition[]>;
  /** Like `positions`, without offsets and fields, which costs less. */
  labels(): AsyncGenerator<readonly SamplePosition[]>;
}

/** A layout in which new shards can be written. */
export interface OutputLayout extends ShardLayout {
  readonly name: OutputLayoutName;
  /** The columns of its shards, if they have columns. */
  readonly table?: Table;
  /** The content of {@link LayoutEntry.listFile} for written shards, if the layout has such a file. */
  list?(shards: readonly ListedShard[]): string;
  createWriter(fd: number, shard: string, maxSampleBytes?: number, samples?: number): ShardWriter;
}

/** A layout of columns, for other software. Only `convert` writes it, because all columns must be known before the first shard. */
export interface TableLayout extends ShardLayout {
  readonly name: TableLayoutName;
  readonly columnNames: TableNames;
  /** The same layout, writing shards with these columns. `samples` then must be exact. */
  ofTable(table: Table): OutputLayout;
}

/** A shard in the list of all shards. */
export interface ListedShard {
  readonly file: string;
  readonly bytes: number;
  readonly samples: number;
}

/** A layout that every writer can write, and that can be repaired. */
export interface WrittenLayout extends OutputLayout {
  readonly name: WrittenLayoutName;
  /** Its writer's rules for the names of a sample, to check them before there is a shard. */
  readonly rules: SampleRules;
  salvage(source: Source): AsyncGenerator<SamplePosition>;
}

/**
 * Whether a sample is stored as its image only, without a name for it. In a map, the first field begins after the start
 * of the sample.
 */
export function isImageAlone({ offset, bytes, fields: [first, ...others] }: SamplePosition): boolean {
  return others.length === 0 && first?.offset === offset && first.bytes === bytes;
}
