import { checkFieldSum, crc32, DamagedShardError, DuplicateKeyError, FileError } from '@shardtool/base';
import {
  type ColumnType,
  type ColumnValue,
  classNumber,
  headerOf,
  imageFieldOf,
  openToConvert,
  renumberClasses,
  type ShardIndex,
} from '@shardtool/format';
import { Dataset, fieldBytes, type Sample, ShardLengthError } from '@shardtool/reader';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { HELD_BYTES } from '../shard/large-sample.js';
import type { ShardTarget } from '../shard/new-shard.js';
import { fieldOf, type NewField, type SampleFacts, withClass } from '../shard/put-sample.js';
import type { StoredSample } from '../shard/put-stored.js';
import { SeenKeys } from '../shard/seen-keys.js';
import { PIECE_BYTES } from '../source/ahead/file-access.js';
import { changed, checkSame, type FoundIndex, findIndex } from './found-index.js';
import { SPLIT_COLUMN } from './input/foreign-columns.js';
import { type Recast, recastIndex } from './input/recast.js';
import { type ViewedShard, wholeIndex } from './input/view.js';
import { checkClass, inTable } from './table-row.js';

/** The samples of a shard, as a new shard stores them. */
export interface ShardSamples {
  /** Number of samples that are selected. */
  readonly samples: number;
  /** Version of a shard without an index, if its storage has versions. */
  readonly version: string | undefined;
  /** Label columns of the new dataset, with a value for each selected sample. */
  readonly columns: ShardIndex['columns'];
  readonly skippedEntries: number;
  readonly skippedLinks: number;
  /** Number of samples that have no row in the labels, or were not selected. */
  readonly leftOut: number;
  /** The values of a column of the index for the selected samples; null for unknown sizes. */
  valuesOf(column: string, classes: readonly string[]): readonly ColumnValue[];
  /** Yields the selected samples in their order. Each is valid until the next. `mayBeLarge`: large ones come in pieces. */
  read(mayBeLarge: boolean): AsyncGenerator<StoredSample>;
  close(): Promise<void>;
}

const CLASS_FIELD = 'cls';
/** Columns of {@link ShardSamples.valuesOf} whose values are in the payloads, if no index has them. */
const IN_PAYLOADS = ['class', 'width', 'height'];

/**
 * Opens the samples of a shard. With `viewed` the samples and classes are those of its index. Every field that has a
 * crc32 is checked against it. `valuesOf` is only called with the column `sortBy`. Throws ShardIndexError for an index
 * of another pack and FileError; `read` throws {@link SampleChecksumError} with shard and key for a damaged sample, and
 * FileChangedError for a shard without checksums that was changed meanwhile. The caller closes it.
 */
export async function openShardSamples(
  input: DatasetShard,
  target: Pick<ShardTarget, 'layout' | 'columnTypes' | 'maxSampleBytes'>,
  viewed?: ViewedShard,
  recast: Recast | null = null,
  sortBy?: string,
): Promise<ShardSamples> {
  const isWhole = (recast !== null && recast.where !== null) || (sortBy !== undefined && IN_PAYLOADS.includes(sortBy));
  const found = viewed === undefined ? await findIndex(input, isWhole) : await indexOfView(viewed);
  try {
    return await samplesOf(input, target, found, viewed, recast);
  } catch (error) {
    await found.source?.close();
    throw error;
  }
}

async function indexOfView(viewed: ViewedShard): Promise<FoundIndex> {
  const index = await wholeIndex(viewed);
  return { index, isWalked: false, skippedEntries: 0, skippedLinks: 0, source: null };
}

async function samplesOf(
  input: DatasetShard,
  target: Pick<ShardTarget, 'layout' | 'columnTypes' | 'maxSampleBytes'>,
  found: FoundIndex,
  viewed: ViewedShard | undefined,
  recast: Recast | null,
): Promise<ShardSamples> {
  const { index: own, isWalked, skippedEntries, skippedLinks, version, source } = found;
  // A view uses the class numbers of its dataset.
  const numbers = viewed === undefined ? (input.classNumbers ?? null) : null;
  const renumbered = {
    ...withSplit(own, viewed === undefined ? input.split : undefined),
    cls: renumberClasses(own.cls, numbers),
  };
  const { index, taken, skipped } =
    recast === null ? { index: renumbered, taken: null, skipped: null } : await recastIndex(input, renumbered, recast);
  // A pack has no repeated keys.
  if (input.record === null) refuseRepeatedKeys(input.name, index.key, taken);
  const hasOtherClass = viewed !== undefined || (recast !== null && recast.from !== 'field');
  // If only the headers were walked, the class is in a field that is now read.
  const isClassField = isWalked && !hasOtherClass;
  const classOf = (row: number, field: Uint8Array | undefined): number => {
    if (!isClassField || field === undefined) return index.cls[row]!;
    const cls = classNumber(field);
    return numbers === null ? cls : (numbers[cls] ?? -1);
  };
  let unused = source;
  const open = async () => {
    const opened = unused ?? (await openToConvert(input.format, input.path, input.reading, input.storage));
    unused = null;
    return opened;
  };
  const dataset = datasetOf(input, index, target.maxSampleBytes, viewed === undefined ? open : viewed.open);
  const samples = taken === null ? index.samples : taken.reduce((sum, one) => sum + one, 0);
  const { imageOnly = false, table } = target.layout;
  const asStored = (fields: readonly NewField[], cls: number) =>
    table === undefined
      ? withClass(hasOtherClass ? fields.filter(({ name }) => name !== 'cls') : fields, cls, imageOnly)
      : inTable(table, fields);
  async function* stored(mayBeLarge: boolean): AsyncGenerator<StoredSample> {
    for (const run of runsOf(index, mayBeLarge)) {
      if (run.isLarge) {
        const row = run.from;
        if (taken?.[row] === 0) continue;
        const heads = isWalked ? await headsOf(dataset, index, row) : undefined;
        const cls = classOf(row, heads?.cls);
        const fields = asStored(await fieldsInPieces(dataset, index, row), cls);
        yield { key: index.key[row]!, fields, facts: factsOf(cls, heads, index, row), bytes: index.bytes[row]! };
        continue;
      }
      for await (const sample of dataset.samples({ from: run.from, to: run.to, checksum: true, reuse: true })) {
        const row = sample.index;
        if (taken?.[row] === 0) continue;
        const cls = classOf(row, sample.fields.cls);
        if (table !== undefined) checkClass(sample, cls, table, hasOtherClass, input.name);
        const fields = asStored(fieldsOf(sample, index, row), cls);
        yield { key: sample.key, fields, facts: factsOf(cls, sample.fields, index, row), bytes: index.bytes[row]! };
      }
    }
  }
  async function* read(mayBeLarge: boolean): AsyncGenerator<StoredSample> {
    try {
      yield* stored(mayBeLarge);
    } catch (error) {
      // The index was made from the headers of this shard, and it was longer then.
      if (isWalked && error instanceof ShardLengthError) throw changed(input);
      // A damaged payload that is stored compressed is first found here, by the function that reads bytes.
      throw error instanceof FileError && error.cause instanceof DamagedShardError ? error.cause : error;
    }
    await checkSame(input, found);
  }
  return {
    samples,
    version,
    columns: takenOf(withAll(index, target.columnTypes), taken),
    skippedEntries: skippedEntries + (skipped?.files ?? 0),
    skippedLinks,
    leftOut: index.samples - samples - (skipped?.samples ?? 0),
    valuesOf: (column, names) => selected(columnOf(index, column, names), taken),
    read,
    async close() {
      await dataset.close();
      await unused?.close();
    },
  };
}

function columnOf(index: ShardIndex, column: string, classes: readonly string[]): readonly ColumnValue[] {
  const isUnread = (row: number) => index.orientation[row] === 0;
  switch (column) {
    case 'key':
      return index.key;
    case 'source':
      return index.source;
    case 'class':
      return Array.from(index.cls, (cls) => classes[cls] ?? null);
    case 'bytes':
      return Array.from(index.bytes);
    case 'width':
    case 'height':
      return Array.from(index[column], (pixels, row) => (isUnread(row) ? null : pixels));
    default:
      return index.columns.get(column) ?? new Array<null>(index.samples).fill(null);
  }
}

function selected(values: readonly ColumnValue[], taken: Uint8Array | null): readonly ColumnValue[] {
  return taken === null ? values : values.filter((_, row) => taken[row] === 1);
}

/** Returns the values of the selected rows. */
function takenOf(columns: ShardIndex['columns'], taken: Uint8Array | null): ShardIndex['columns'] {
  if (taken === null) return columns;
  return new Map(Array.from(columns, ([name, values]) => [name, selected(values, taken)]));
}

/** Yields runs of rows that are read together, or a single row that is read in pieces. */
function* runsOf({ samples, bytes }: ShardIndex, mayBeLarge: boolean) {
  for (let from = 0, to = 0; from < samples; from = to) {
    const isLarge = mayBeLarge && bytes[from]! > HELD_BYTES;
    to = from + 1;
    while (!isLarge && to < samples && !(mayBeLarge && bytes[to]! > HELD_BYTES)) to++;
    yield { from, to, isLarge };
  }
}

/** The class field of a sample that is read in pieces, and the first bytes of its image. */
async function headsOf(dataset: Dataset, { fields }: ShardIndex, row: number): Promise<Record<string, Uint8Array>> {
  const heads: Record<string, Uint8Array> = {};
  const having = [...fields].filter(([, { offset }]) => offset[row]! >= 0);
  const image = imageFieldOf(having.map(([name]) => ({ name })));
  for (const [name, { offset, bytes }] of having) {
    if (name !== image && name !== CLASS_FIELD) continue;
    const head = new Uint8Array(bytes[row]! > HELD_BYTES ? PIECE_BYTES : bytes[row]!);
    await dataset.files.read(0, offset[row]!, head);
    heads[name] = head;
  }
  return heads;
}

/** The fields of a sample that is read in pieces. A wrong checksum is reported with the last piece. */
async function fieldsInPieces(dataset: Dataset, index: ShardIndex, row: number): Promise<NewField[]> {
  const shard = dataset.shards[0]!.name;
  const key = index.key[row]!;
  const fields: NewField[] = [];
  for (const [name, column] of index.fields) {
    const [offset, bytes] = [column.offset[row]!, column.bytes[row]!];
    if (offset < 0) continue;
    if (column.msgpack?.[row] === 1) {
      const stored = new Uint8Array(bytes);
      await dataset.files.read(0, offset, stored);
      fields.push(fieldOf(name, fieldBytes(stored, column, row, { shard, key, field: name })));
      continue;
    }
    const check = (actual: number) => {
      const expected = column.crc32?.[row];
      if (expected !== undefined) checkFieldSum({ shard, key, field: name, actual, expected });
    };
    fields.push({ name, bytes, put: notWhole, pieces: () => piecesOf(dataset, offset, bytes, check) });
  }
  return fields;
}

function notWhole(): never {
  throw new Error('A large payload comes in pieces.');
}

/** Reads a range of the shard in pieces, each valid until the next. `check` receives its crc32 before the last is used. */
async function* piecesOf(
  dataset: Dataset,
  offset: number,
  bytes: number,
  check: (crc32: number) => void,
): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(Math.min(PIECE_BYTES, bytes));
  let sum = 0;
  for (let done = 0; done < bytes; done += PIECE_BYTES) {
    const piece = buffer.subarray(0, Math.min(PIECE_BYTES, bytes - done));
    await dataset.files.read(0, offset + done, piece);
    sum = crc32(piece, sum);
    if (done + PIECE_BYTES >= bytes) check(sum);
    yield piece;
  }
}

/**
 * Adds the split of the shard as a column, if the dataset has several splits and the shard has no column of that name.
 */
function withSplit(index: ShardIndex, split: string | null | undefined): ShardIndex {
  if (split === undefined || index.columns.has(SPLIT_COLUMN)) return index;
  const values = new Array<string | null>(index.samples).fill(split);
  return { ...index, columns: new Map([...index.columns, [SPLIT_COLUMN, values]]) };
}

/** Adds the label columns of the dataset that this shard lacks, with null for every sample. */
function withAll({ columns, samples }: ShardIndex, types: ShardTarget['columnTypes']): ShardIndex['columns'] {
  const valuesOf = (name: string, type: ColumnType): readonly ColumnValue[] => {
    const values = columns.get(name) ?? new Array<null>(samples).fill(null);
    const isText = type === 'string' && values.some((value) => value !== null && typeof value !== 'string');
    return isText ? values.map((value) => (value === null ? null : String(value))) : values;
  };
  return new Map(Array.from(types, ([name, type]) => [name, valuesOf(name, type)]));
}

/** Throws {@link DuplicateKeyError} if two selected samples have the same key, as no layout that is written allows. */
function refuseRepeatedKeys(shard: string, keys: readonly string[], taken: Uint8Array | null): void {
  const seen = new SeenKeys();
  for (const [row, key] of keys.entries()) {
    if (taken?.[row] === 0 || !seen.add(key)) continue;
    // Another key may have the same hash.
    if (keys.findIndex((other, before) => other === key && taken?.[before] !== 0) === row) continue;
    const message = `${shard}: two samples have the key ${JSON.stringify(key)}, but each key may occur once per shard; write the samples with shardtool.Writer, under other keys.`;
    throw new DuplicateKeyError({ shard, key }, message);
  }
}

/** Opens the one shard as a dataset, which reads ahead in large pieces and verifies checksums. */
function datasetOf(
  { name, path, format, storage, bytes }: DatasetShard,
  index: ShardIndex,
  maxSampleBytes: number,
  open: ViewedShard['open'],
): Dataset {
  const { samples } = index;
  const shard = {
    name,
    path,
    storage,
    bytes,
    samples,
    open,
    maxSampleBytes,
    loadIndex: async () => index,
    loadParts: async () => index,
    findCropIndex: async () => null,
  };
  return new Dataset({
    location: path,
    format,
    identity: '',
    shards: [shard],
    classes: [],
    classSamples: [],
    fields: [],
  });
}

function fieldsOf({ fields }: Sample, index: ShardIndex, row: number) {
  return Object.entries(fields).map(([name, payload]) => fieldOf(name, payload, index.fields.get(name)!.crc32?.[row]));
}

/** The facts in the index, and the size of the image in `fields` if it is not in the index. */
function factsOf(
  cls: number,
  fields: Readonly<Record<string, Uint8Array>> | undefined,
  index: ShardIndex,
  row: number,
): SampleFacts {
  const source = index.source[row]!;
  if (index.orientation[row] === 0 && fields !== undefined) {
    const image = imageFieldOf(Object.keys(fields).map((name) => ({ name })));
    const header = image === undefined ? null : headerOf(fields[image]!);
    const { width, height, orientation } = header ?? { width: 0, height: 0, orientation: 1 };
    return { source, width, height, orientation, cls };
  }
  const [width, height] = [index.width[row]!, index.height[row]!];
  return { source, width, height, orientation: index.orientation[row]!, cls };
}
