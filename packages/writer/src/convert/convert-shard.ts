import {
  buildShardIndex,
  type ColumnType,
  type ColumnValue,
  countOf,
  layoutOf,
  openShard,
  readShardIndex,
  type ShardIndex,
  ShardIndexError,
} from '@shardtool/format';
import { Dataset, type Sample } from '@shardtool/reader';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { createShard, type ShardRecord, type ShardTarget } from '../shard/new-shard.js';
import { fieldOf, putSample, type SampleFacts, withClass } from '../shard/put-sample.js';
import type { Report } from '../shard/shard-job.js';
import type { ViewedShard } from './view.js';

/** What became of a shard. */
export interface ConvertedShard extends ShardRecord {
  /** Its number in the dataset. */
  readonly shard: number;
  /** Files in it that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
}

/**
 * Writes the samples of a shard, in the order of its index, to a new one of the same name; every field is held against
 * its crc32 on the way. With `viewed` the samples and classes are those of its index. Throws {@link SampleChecksumError} with shard and key for a damaged sample, what is wrong with
 * the index, and what {@link createShard} throws; nothing of the new shard is left then.
 */
export async function convertShard(
  input: DatasetShard,
  target: ShardTarget,
  report: Report,
  viewed?: ViewedShard,
): Promise<Omit<ConvertedShard, 'shard'>> {
  const { index, skippedEntries } =
    viewed === undefined ? await indexOf(input) : { index: await viewed.loadIndex(), skippedEntries: 0 };
  const dataset = datasetOf(input, index, viewed);
  try {
    const record = await createShard(target, input.stem, index.samples, async (writer, rows) => {
      let row = 0;
      for await (const sample of dataset.samples({ checksum: true })) {
        const stored = fieldsOf(sample, index, row).filter(({ name }) => viewed === undefined || name !== 'cls');
        const fields = withClass(stored, sample.cls, target.layout.imageOnly ?? false);
        const facts = factsOf(sample, index, row++);
        putSample(writer, rows, sample.key, fields, () => facts);
        report(1, index.bytes[sample.number]!);
      }
      return withAll(index, target.columnTypes);
    });
    return { ...record, skippedEntries };
  } finally {
    await dataset.close();
  }
}

/** The label columns of the dataset; where this shard lacks one, no sample has a value. */
function withAll({ columns, samples }: ShardIndex, types: ShardTarget['columnTypes']): ShardIndex['columns'] {
  const valuesOf = (name: string, type: ColumnType): readonly ColumnValue[] => {
    const values = columns.get(name) ?? new Array<null>(samples).fill(null);
    const isText = type === 'string' && values.some((value) => value !== null && typeof value !== 'string');
    return isText ? values.map((value) => (value === null ? null : String(value))) : values;
  };
  return new Map(Array.from(types, ([name, type]) => [name, valuesOf(name, type)]));
}

/** The index that lies beside the shard, or one that is made from its headers and payloads. */
async function indexOf(input: DatasetShard): Promise<{ index: ShardIndex; skippedEntries: number }> {
  let skippedEntries = 0;
  if (input.indexPath !== null) {
    const index = await readShardIndex(input.indexPath);
    if (input.record !== null && input.record.samples !== index.samples) throw wrongIndex(input, index.samples);
    return { index, skippedEntries };
  }
  const source = await openShard(input.format, input.path);
  try {
    const index = await buildShardIndex(await layoutOf(input.format), source, () => {
      skippedEntries++;
    });
    return { index, skippedEntries };
  } finally {
    await source.close();
  }
}

function wrongIndex({ name, indexPath, record }: DatasetShard, found: number): ShardIndexError {
  const message = `${indexPath} has ${countOf(found, 'sample')}, and dataset.json says that ${name} has ${record!.samples}: one of the two belongs to another pack; restore it.`;
  return new ShardIndexError({ shard: name, path: indexPath! }, message);
}

/** The one shard as a dataset, which reads ahead in large pieces and checks what it read. */
function datasetOf({ name, path, format, bytes }: DatasetShard, index: ShardIndex, viewed?: ViewedShard): Dataset {
  const { samples } = index;
  const open = viewed === undefined ? () => openShard(format, path) : viewed.open;
  const shard = {
    ...{ name, path, bytes, samples, open },
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

function factsOf({ cls }: Sample, index: ShardIndex, row: number): SampleFacts {
  const [source, width, height] = [index.source[row]!, index.width[row]!, index.height[row]!];
  return { source, width, height, orientation: index.orientation[row]!, cls };
}
