import { checkFieldSum, countOf, ShardIndexError } from '@shardtool/base';
import {
  buildShardIndex,
  type ColumnType,
  type ColumnValue,
  headerOf,
  type IndexRows,
  imageFieldOf,
  layoutWith,
  openToConvert,
  readShardIndex,
  renumberClasses,
  type ShardIndex,
  type ShardWriter,
} from '@shardtool/format';
import { Dataset, fieldBytes, type Sample } from '@shardtool/reader';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { goesInPieces, putLargeSample } from '../shard/large-sample.js';
import { createShard, type ShardRecord, type ShardTarget } from '../shard/new-shard.js';
import { fieldOf, type NewField, putSample, type SampleFacts, withClass } from '../shard/put-sample.js';
import type { Report } from '../shard/shard-job.js';
import { PIECE_BYTES } from '../source/ahead/file-access.js';
import { SPLIT_COLUMN } from './input/foreign-columns.js';
import { type Recast, recastIndex } from './input/recast.js';
import { type ViewedShard, wholeIndex } from './input/view.js';
import { checkClass, inTable } from './table-row.js';

/** Result of converting a shard. */
export interface ConvertedShard extends ShardRecord {
  /** Its number in the dataset. */
  readonly shard: number;
  /** Number of files in it that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
  /** Number of links in it that were not followed. */
  readonly skippedLinks: number;
  /** Number of samples that have no row in the labels, or were not selected. */
  readonly leftOut: number;
}

/**
 * Writes the samples of a shard, in the order of its index, to a new shard of the same name. Every field is checked
 * against its crc32. With `viewed` the samples and classes are those of its index. Throws {@link SampleChecksumError}
 * with shard and key for a damaged sample, ShardIndexError for an index of another pack, SampleSizeError,
 * EntryNameError or KeyLengthError for samples that the new layout does not support, {@link DiskFullError} and
 * FileError. After an error nothing of the new shard is left.
 */
export async function convertShard(
  input: DatasetShard,
  target: ShardTarget,
  report: Report,
  viewed?: ViewedShard,
  recast: Recast | null = null,
): Promise<Omit<ConvertedShard, 'shard'>> {
  const {
    index: own,
    skippedEntries,
    skippedLinks,
  } = viewed === undefined
    ? await indexOf(input)
    : { index: await wholeIndex(viewed), skippedEntries: 0, skippedLinks: 0 };
  // A view uses the class numbers of its dataset.
  const numbers = viewed === undefined ? (input.classNumbers ?? null) : null;
  const renumbered = {
    ...withSplit(own, viewed === undefined ? input.split : undefined),
    cls: renumberClasses(own.cls, numbers),
  };
  const { index, taken, skipped } =
    recast === null ? { index: renumbered, taken: null, skipped: null } : await recastIndex(renumbered, recast);
  const hasOtherClass = viewed !== undefined || (recast !== null && recast.from !== 'field');
  const dataset = datasetOf(input, index, target.maxSampleBytes, viewed);
  try {
    const samples = taken === null ? index.samples : taken.reduce((sum, one) => sum + one, 0);
    const record = await createShard(target, input.stem, samples, async (writer, rows) => {
      const { imageOnly = false, table } = target.layout;
      const asStored = (fields: readonly NewField[], cls: number) =>
        table === undefined
          ? withClass(hasOtherClass ? fields.filter(({ name }) => name !== 'cls') : fields, cls, imageOnly)
          : inTable(table, fields);
      const columns = withAll(index, target.columnTypes);
      for (const run of runsOf(index, writer)) {
        if (run.isLarge && taken?.[run.from] === 0) continue;
        if (run.isLarge) {
          await putLarge(writer, rows, dataset, index, run.from, asStored);
          report(1, index.bytes[run.from]!);
          continue;
        }
        for await (const sample of dataset.samples({ from: run.from, to: run.to, checksum: true, reuse: true })) {
          const row = sample.index;
          if (taken?.[row] === 0) continue;
          const facts = factsOf(sample, index, row);
          writer.describe?.({ cls: sample.label, label: (name) => columns.get(name)?.[row] ?? null });
          if (table !== undefined) checkClass(sample, table, hasOtherClass, input.name);
          putSample(writer, rows, sample.key, asStored(fieldsOf(sample, index, row), sample.label), () => facts);
          report(1, index.bytes[row]!);
        }
      }
      return takenOf(columns, taken);
    });
    return {
      ...record,
      skippedEntries: skippedEntries + (skipped?.files ?? 0),
      skippedLinks,
      leftOut: index.samples - record.samples - (skipped?.samples ?? 0),
    };
  } finally {
    await dataset.close();
  }
}

/** Returns the values of the selected rows. */
function takenOf(columns: ShardIndex['columns'], taken: Uint8Array | null): ShardIndex['columns'] {
  if (taken === null) return columns;
  return new Map(Array.from(columns, ([name, values]) => [name, values.filter((_, row) => taken[row] === 1)]));
}

/** Yields runs of rows that are read together, or a single row that is written in pieces. */
function* runsOf({ samples, bytes }: ShardIndex, writer: ShardWriter) {
  for (let from = 0, to = 0; from < samples; from = to) {
    const isLarge = goesInPieces(bytes[from]!, writer);
    to = from + 1;
    while (!isLarge && to < samples && !goesInPieces(bytes[to]!, writer)) to++;
    yield { from, to, isLarge };
  }
}

/** Reads a sample from its shard in pieces. Throws {@link SampleChecksumError} as for a sample that is read whole. */
async function putLarge(
  writer: ShardWriter,
  rows: IndexRows,
  dataset: Dataset,
  index: ShardIndex,
  row: number,
  asStored: (fields: readonly NewField[], cls: number) => readonly NewField[],
): Promise<void> {
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
    } else fields.push({ name, bytes, put: notWhole, pieces: () => piecesOf(dataset, offset, bytes) });
  }
  const cls = index.cls[row]!;
  const sums = await putLargeSample(writer, rows, key, asStored(fields, cls), [], () =>
    factsOf({ label: cls }, index, row),
  );
  for (const [name, { crc32: expected }] of index.fields) {
    const [sum, actual] = [expected?.[row], sums.get(name)];
    if (sum !== undefined && actual !== undefined) checkFieldSum({ shard, key, field: name, actual, expected: sum });
  }
}

function notWhole(): never {
  throw new Error('A large payload comes in pieces.');
}

/** Reads a range of the shard in pieces, each valid until the next. */
async function* piecesOf(dataset: Dataset, offset: number, bytes: number): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(Math.min(PIECE_BYTES, bytes));
  for (let done = 0; done < bytes; done += PIECE_BYTES) {
    const piece = buffer.subarray(0, Math.min(PIECE_BYTES, bytes - done));
    await dataset.files.read(0, offset + done, piece);
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

/** Returns the index next to the shard, or one made from its headers and payloads. */
async function indexOf(
  input: DatasetShard,
): Promise<{ readonly index: ShardIndex; readonly skippedEntries: number; readonly skippedLinks: number }> {
  const skipped = { entries: 0, links: 0 };
  if (input.indexPath !== null) {
    const index = await readShardIndex(input.indexPath, undefined, input.storage);
    if (input.record !== null && input.record.samples !== index.samples) throw wrongIndex(input, index.samples);
    return { index, skippedEntries: 0, skippedLinks: 0 };
  }
  const source = await openToConvert(input.format, input.path, input.reading, input.storage);
  try {
    const index = await buildShardIndex(await layoutWith(input.format, input.reading), source, (_, __, kind) => {
      if (kind === 'link') skipped.links++;
      else skipped.entries++;
    });
    return { index, skippedEntries: skipped.entries, skippedLinks: skipped.links };
  } finally {
    await source.close();
  }
}

function wrongIndex({ name, indexPath, record }: DatasetShard, found: number): ShardIndexError {
  const message = `${indexPath} has ${countOf(found, 'sample')}, but according to dataset.json ${name} has ${record!.samples}: one of the two belongs to another pack; restore it.`;
  return new ShardIndexError({ shard: name, path: indexPath! }, message);
}

/** Opens the one shard as a dataset, which reads ahead in large pieces and verifies checksums. */
function datasetOf(
  { name, path, format, storage, bytes, reading }: DatasetShard,
  index: ShardIndex,
  maxSampleBytes: number,
  viewed?: ViewedShard,
): Dataset {
  const { samples } = index;
  const open = viewed === undefined ? () => openToConvert(format, path, reading, storage) : viewed.open;
  const shard = {
    ...{ name, path, storage, bytes, samples, open, maxSampleBytes },
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

/** Probes the image now if that has not been done yet. */
function factsOf(
  { label: cls, fields }: Pick<Sample, 'label'> & Partial<Pick<Sample, 'fields'>>,
  index: ShardIndex,
  row: number,
): SampleFacts {
  if (index.orientation[row] === 0 && fields !== undefined) {
    const image = imageFieldOf(Object.keys(fields).map((name) => ({ name })));
    const header = image === undefined ? null : headerOf(fields[image]!);
    const { width, height, orientation } = header ?? { width: 0, height: 0, orientation: 1 };
    return { source: index.source[row]!, width, height, orientation, cls };
  }
  const [source, width, height] = [index.source[row]!, index.width[row]!, index.height[row]!];
  return { source, width, height, orientation: index.orientation[row]!, cls };
}
