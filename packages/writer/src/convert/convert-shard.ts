import {
  buildShardIndex,
  crc32,
  layoutOf,
  openShard,
  readShardIndex,
  type ShardIndex,
  ShardIndexError,
  type ShardWriter,
} from '@shardtool/format';
import { Dataset, type Sample } from '@shardtool/reader';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { createShard, type ShardRecord, type ShardTarget } from '../shard/new-shard.js';
import type { Report } from '../shard/shard-job.js';
import type { SampleRow } from '../shard/shard-rows.js';

/** What became of a shard. */
export interface ConvertedShard extends ShardRecord {
  /** Its number in the dataset. */
  readonly shard: number;
  /** Files in it that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
}

/**
 * Writes the samples of a shard, in the order of its index, to a new one of the same name; every field is held against
 * its crc32 on the way. Throws {@link SampleChecksumError} with shard and key for a damaged sample, what is wrong with
 * the index, and what {@link createShard} throws; nothing of the new shard is left then.
 */
export async function convertShard(
  input: DatasetShard,
  target: ShardTarget,
  report: Report,
): Promise<Omit<ConvertedShard, 'shard'>> {
  const { index, skippedEntries } = await indexOf(input);
  const dataset = datasetOf(input, index);
  try {
    const record = await createShard(target, input.stem, index.samples, async (writer, rows) => {
      let row = 0;
      for await (const sample of dataset.samples({ checksum: true })) {
        rows.add(writeSample(writer, sample, index, row++, target.layout.imageOnly ?? false));
        report(1, index.bytes[sample.number]!);
      }
      return index.columns;
    });
    return { ...record, skippedEntries };
  } finally {
    await dataset.close();
  }
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
  const message = `${indexPath} has ${found} samples, and dataset.json says that ${name} has ${record!.samples}: one of the two belongs to another pack; restore it.`;
  return new ShardIndexError({ shard: name, path: indexPath! }, message);
}

/** The one shard as a dataset, which reads ahead in large pieces and checks what it read. */
function datasetOf({ name, path, format, bytes }: DatasetShard, index: ShardIndex): Dataset {
  const { samples } = index;
  const open = () => openShard(format, path);
  const shard = { name, path, bytes, samples, open, loadIndex: async () => index, loadParts: async () => index };
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

function writeSample(
  writer: ShardWriter,
  sample: Sample,
  index: ShardIndex,
  row: number,
  imageOnly: boolean,
): SampleRow {
  const { key, cls } = sample;
  const stored = fieldsOf(sample, index, row, imageOnly);
  const fields = stored.map(({ name, payload }) => ({ name, bytes: payload.length }));
  const places = writer.begin(key, fields);
  for (const [i, { payload }] of stored.entries()) places[i]!.set(payload);
  const checksums = stored.map((field) => field.crc32);
  writer.commit(checksums);
  const [source, width, height] = [index.source[row]!, index.width[row]!, index.height[row]!];
  const orientation = index.orientation[row]!;
  return { key, source, fields, crc32: checksums, width, height, orientation, cls };
}

interface StoredField {
  readonly name: string;
  readonly payload: Uint8Array;
  readonly crc32: number;
}

/**
 * The fields that the new shard gets, by name. The class number is a field of its own, except where a shard stores images
 * alone: there only the index has it, and it becomes a field again here.
 */
function fieldsOf({ fields, cls }: Sample, index: ShardIndex, row: number, imageOnly: boolean): StoredField[] {
  const stored = Object.entries(fields)
    .filter(([name]) => !imageOnly || name !== 'cls' || cls === -1)
    .map(([name, payload]) => ({ name, payload, crc32: index.fields.get(name)!.crc32?.[row] ?? crc32(payload) }));
  if (!imageOnly && cls !== -1 && fields.cls === undefined) {
    const payload = Buffer.from(String(cls));
    stored.push({ name: 'cls', payload, crc32: crc32(payload) });
  }
  return stored.sort((a, b) => (a.name < b.name ? -1 : 1));
}
