import type { DamagedShardError } from '@shardtool/base';
import type { SampleRules } from '../sample/sample-check.js';
import type { ColumnValue } from '../shard-index/label-column.js';
import type { Source } from '../source.js';
import type { LayoutName, OutputLayoutName, TableLayoutName, WrittenLayoutName } from './registry.js';
import type { SampleValues, Table, TableNames } from './table.js';

/** Where one field of a sample lies in its shard: `offset` and `bytes` of the payload alone. */
export interface FieldPosition {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  /**
   * In msgpack: the bytes are not the payload itself but a value (an integer, for `cls`) whose text is the payload.
   * `fieldPayload` gives the payload in either case. Absent means false.
   */
  readonly msgpack?: boolean;
  /** Of the payload, where the layout itself keeps it. */
  readonly crc32?: number;
  /** Why the payload is lost; {@link crc32} is then one that what stands in its place does not have. */
  readonly lost?: DamagedShardError;
}

/** Where one sample lies in its shard: the smallest span that holds all of it, headers included. */
export interface SamplePosition {
  readonly key: string;
  readonly offset: number;
  readonly bytes: number;
  readonly fields: readonly FieldPosition[];
  /** The class number, where the layout keeps it as a value of its own; absent where a field `cls` has it. */
  readonly cls?: number;
  /** What else the layout keeps of a sample as single values: they become label columns of the index. */
  readonly labels?: ReadonlyMap<string, ColumnValue>;
}

/** One field to be written. Its name says whether it is typed, where the layout has types: see `fieldType`. */
export interface FieldSize {
  readonly name: string;
  readonly bytes: number;
}

/** One field whose payload comes in pieces, `bytes` all together. */
export interface FieldInPieces extends FieldSize {
  pieces(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/** What a finished shard is, and where everything in it lies, in the order in which samples were committed. */
export interface FinishedShard {
  /** Size of the file in bytes. */
  readonly bytes: number;
  /** crc32 of the whole file. */
  readonly crc32: number;
  /** Per sample: offset and length of its span. */
  readonly sampleOffset: Float64Array;
  readonly sampleBytes: Float64Array;
  /** Per field, samples in order and each sample's fields in the order in which they were begun: payload offset. */
  readonly payloadOffset: Float64Array;
  /**
   * Per field, where any is stored as a msgpack value (see {@link FieldPosition}): 1 for those that are, and how many
   * bytes each takes in the file. Absent where every payload lies there as it was given.
   */
  readonly payloadMsgpack?: Uint8Array;
  readonly payloadBytes?: Float64Array;
}

/**
 * Writes one shard front to back. Synchronous, since it runs in a worker that has nothing else to do; payloads are read
 * straight into the write buffer, so that no byte is copied without need.
 */
export interface ShardWriter {
  /** Says what the next sample has beside its payloads. Absent where a layout keeps nothing but payloads. */
  describe?(values: SampleValues): void;
  /**
   * Lays out the next sample in the write buffer and returns the place of each payload, in the order of `fields`
   * (sorted by name by the caller). The caller fills them, then calls {@link commit} or {@link discard}.
   */
  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[];
  /**
   * The sample that was begun is complete. `payloadCrc32` has the crc32 of each payload where it came from. The checksum of the
   * file is put together from these, so it is right only if the payloads reach the file as they were read. Throws
   * `WriteCheckError` for a payload that is stored as another value and has changed in its place.
   */
  commit(payloadCrc32?: readonly number[]): void;
  /** The sample that was begun is not to be written; nothing of it stays. */
  discard(): void;
  /**
   * Writes a whole sample of which no more is held than a piece, and returns the crc32 of each payload. Where it throws
   * (what the pieces throw), nothing of the sample stays. Absent where a layout has to hold a sample whole.
   */
  writeInPieces?(key: string, fields: readonly FieldInPieces[]): Promise<readonly number[]>;
  /** Writes the rest. The file descriptor stays open, and whoever gave it flushes it to the disk. */
  finish(): FinishedShard;
}

/**
 * Is called for a file in a shard that belongs to no sample: in tar, a dotfile or a name without a dot, or a link that is
 * not followed.
 */
export type OnSkipped = (name: string, offset: number, kind?: 'link') => void;

/**
 * Which columns (features) of other software's shards are the image, the class and the key of a sample. What is left out is found by its
 * usual names; without a key, keys are the shard's name and a number.
 */
export interface ChosenColumns {
  readonly image?: string | undefined;
  readonly label?: string | undefined;
  readonly key?: string | undefined;
}

/** What is done with links in an archive: they are skipped, or taken for the file in the archive that they lead to. */
export type LinkChoice = 'skip' | 'follow';

/** How shards of other software are read, where that is not decided by what they are. */
export interface ReadChoice extends ChosenColumns {
  readonly links?: LinkChoice | undefined;
  /** One of the splits that the files themselves have in them: see {@link PartedShard.splits}. */
  readonly split?: string | undefined;
}

/**
 * Hears of a sample that has changed, where the walk can go on behind it, with its key where that is known. Whoever does not listen has
 * the walk end there.
 */
export type OnDamaged = (error: DamagedShardError, key?: string) => void;

/** One kind of shard file: an object of functions. A layout that is only read has no writer. */
export interface ShardLayout {
  readonly name: LayoutName;
  /** With the dot: `.tar`. */
  readonly extension: string;
  /** A shard is a folder of that extension, and this is the file in it: `data.mdb`. Absent where the shard is the file. */
  readonly innerFile?: string;
  /** Shards lie in this folder below that of their dataset. Absent: in the dataset's own. */
  readonly shardFolder?: string;
  /** A sample is stored as its image alone: the writer takes exactly one field. Absent means false. */
  readonly imageOnly?: boolean;
  /**
   * A dataset of such shards is opened from their headers alone, which have classes and labels: sizes of images and checksums are known
   * once `shardtool index` has read the payloads. Absent: whoever opens shards without indexes reads all of them.
   */
  readonly isOpenedByWalk?: boolean;
  /**
   * Opens a writer on a new, empty file. `shard` is its final name, for messages. It throws `SampleSizeError` for a sample
   * of more than `maxSampleBytes`, all payloads together. `samples` is how many there will be, where that is known.
   */
  createWriter?(fd: number, shard: string, maxSampleBytes?: number, samples?: number): ShardWriter;
  /**
   * Walks a shard by its headers and yields its samples in the order of the file, some hundreds at a time. Throws a
   * tagged error with shard and offset at the first thing that is not as the layout says.
   */
  samples(source: Source, onSkipped?: OnSkipped, onDamaged?: OnDamaged): AsyncGenerator<readonly SamplePosition[]>;
  /** The same without holding payloads against checksums of the layout's own. Absent: {@link samples} does not either. */
  headers?(source: Source): AsyncGenerator<readonly SamplePosition[]>;
  /**
   * What is left of a damaged shard: yields every sample that can be found, also behind damage, and never throws for what
   * is wrong with the data. A key may come twice, with some of its fields each time, and what is found may be damaged.
   * Absent where the layout has no way to find samples behind damage.
   */
  salvage?(source: Source): AsyncGenerator<SamplePosition>;
  /**
   * The shard as if payloads lay in it as they are, where they do not: deflated, or in pages of their own coding. All
   * positions that {@link samples} yields are then of this view, which is what it is given; every read of a payload goes
   * through it, so that only plain bytes reach the arena. It owns `source` and closes it. See {@link PieceSource}.
   */
  expand?(source: Source): Promise<Source>;
  /** The same layout with columns chosen by name. Absent where its shards have none, or say themselves what they are. */
  choosing?(columns: ChosenColumns): ShardLayout;
  /** The same layout with the samples of one split alone. Absent where a shard never has several splits in it. */
  ofSplit?(split: string): ShardLayout;
  /** The same layout with links followed. Absent where its shards have none. */
  readonly following?: ShardLayout;
  /**
   * A shard that is compressed as a whole, so that no sample of it can be read by itself, as it was before; any other as it is. Conversion
   * does this, and nothing else. It owns `source`.
   */
  unpack?(source: Source): Promise<Source>;
  /**
   * Reads shards in parts, as if each were a shard: where finding out where everything lies takes reading most of a shard, which is
   * large. Shards that one reader opens share memory.
   */
  partReader?(): PartReader;
}

/** Opens a shard, given what opens its file, from what it says at one end of itself. */
export type PartReader = (open: () => Promise<Source>) => Promise<PartedShard>;

/** A shard in parts that are found and read one by one. */
export interface PartedShard {
  /** Names of the classes, where it says them; another shard may have others, or in another order. */
  readonly classes: readonly string[];
  /** The splits that its samples are of, where it says them. */
  readonly splits?: readonly string[];
  readonly parts: readonly ShardPart[];
}

/** A run of samples of a shard. */
export interface ShardPart {
  /** Number in the shard of its first sample, and how many it has. */
  readonly firstSample: number;
  readonly samples: number;
  /** Of its payloads, in the file. */
  readonly bytes: number;
  /** The part as {@link ShardLayout.expand} shows a shard, as long as its samples say. */
  open(): Promise<Source>;
  /** What {@link ShardLayout.samples} yields, with places in the part. */
  positions(): AsyncGenerator<readonly SamplePosition[]>;
  /** The same without places and fields, which costs less. */
  labels(): AsyncGenerator<readonly SamplePosition[]>;
}

/** A layout that new shards are written in. */
export interface OutputLayout extends ShardLayout {
  readonly name: OutputLayoutName;
  /** The columns that its shards have, where they have any. */
  readonly table?: Table;
  /** What {@link LayoutEntry.listFile} says of shards that were written, where there is such a file. */
  list?(shards: readonly ListedShard[]): string;
  createWriter(fd: number, shard: string, maxSampleBytes?: number, samples?: number): ShardWriter;
}

/** A layout of columns, for other software: `convert` writes it, since all columns are to be known before the first shard is. */
export interface TableLayout extends ShardLayout {
  readonly name: TableLayoutName;
  readonly columnNames: TableNames;
  /** The same, writing shards with these columns. `samples` then has to be right. */
  ofTable(table: Table): OutputLayout;
}

/** A shard as the list of all shards has it. */
export interface ListedShard {
  readonly file: string;
  readonly bytes: number;
  readonly samples: number;
}

/** A layout that can be written by all that write, and repaired. */
export interface WrittenLayout extends OutputLayout {
  readonly name: WrittenLayoutName;
  /** What its writer asks of a sample's names, for those who want to know before there is a shard. */
  readonly rules: SampleRules;
  salvage(source: Source): AsyncGenerator<SamplePosition>;
}

/** Whether a sample is stored as its image alone, without a name for it: a map begins before its first field. */
export function isImageAlone({ offset, bytes, fields: [first, ...others] }: SamplePosition): boolean {
  return others.length === 0 && first?.offset === offset && first.bytes === bytes;
}
