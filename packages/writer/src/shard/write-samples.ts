import path from 'node:path';
import {
  type ColumnValue,
  classNumber,
  headerOf,
  type IndexRows,
  imageFieldOf,
  indexPathOf,
  readShardIndex,
  type ShardIndex,
  type ShardWriter,
} from '@shardtool/format';
import { entryBytes } from '../plan/plan-shards.js';
import { goesInPieces, putLargeSample } from './large-sample.js';
import { createShard, type ShardRecord, type ShardTarget } from './new-shard.js';
import { type NewField, type PayloadOf, putSample, type SampleFacts, withClass } from './put-sample.js';
import { putStored } from './put-stored.js';
import { SeenKeys } from './seen-keys.js';

/** A sample that does not come from files. */
export interface SampleToWrite {
  readonly key: string;
  /** Valid until the next sample is requested. */
  readonly fields: readonly NewField[];
  /** Values of label columns by name; null for a missing value. */
  readonly columns?: ReadonlyMap<string, ColumnValue>;
  /** Facts about a sample that was copied from another shard. Its fields are then the stored ones. */
  readonly facts?: SampleFacts;
}

/** Names of new shards, and callbacks during the writing of consecutive samples. */
export interface SampleCut {
  readonly maxShardBytes: number;
  readonly maxShardSamples: number;
  /** Returns the name of shard `number`, which is about to be created. */
  begin(number: number): Promise<string>;
  /**
   * Called when the shard is complete. Its index is read again if the hash of a later key equals that of an earlier
   * one.
   */
  made(stem: string, record: ShardRecord): Promise<void>;
  /** Called after each sample with the bytes of its payloads. Throws if the work should stop. */
  report(samples: number, bytes: number): void;
  /** Called for a repeated key. Throws, or returns to skip the sample. */
  refuseKey(key: string): void;
}

/**
 * Writes samples to new shards, in the order in which they arrive. Memory use: one sample (64 MiB of a large one), the
 * write buffer, the index of the current shard, and about 20 bytes per key. Throws SampleSizeError, EntryNameError or
 * KeyLengthError for samples that the layout does not support, DiskFullError, FileError, and the errors of `samples`
 * unchanged.
 */
export async function writeSamples(
  samples: AsyncIterator<SampleToWrite, unknown>,
  target: ShardTarget,
  cut: SampleCut,
): Promise<readonly ShardRecord[]> {
  const shards: ShardRecord[] = [];
  const seen = new SeenKeys();
  /** Returns the next sample whose key is new. */
  const take = async (rows: IndexRows | null) => {
    for (;;) {
      const next = await samples.next();
      if (next.done) return next;
      const { key } = next.value;
      if (!seen.add(key) || !(await hasKey(key, rows, target.output, shards))) return next;
      cut.refuseKey(key);
    }
  };
  let next = await take(null);
  while (!next.done) {
    const stem = await cut.begin(shards.length);
    const record = await createShard(target, stem, 0, async (writer, rows) => {
      const columns = new Map([...target.columnTypes.keys()].map((name): [string, ColumnValue[]] => [name, []]));
      let bytes = 0;
      while (!next.done && rows.samples < cut.maxShardSamples) {
        const sample = next.value;
        bytes += tarBytes(sample);
        if (rows.samples > 0 && bytes > cut.maxShardBytes) break;
        await writeSample(writer, rows, sample, target.layout.imageOnly ?? false);
        for (const [name, values] of columns) values.push(sample.columns?.get(name) ?? null);
        cut.report(1, payloadBytes(sample));
        next = await take(rows);
      }
      return columns satisfies ShardIndex['columns'];
    });
    shards.push(record);
    await cut.made(stem, record);
  }
  return shards;
}

async function writeSample(
  writer: ShardWriter,
  rows: IndexRows,
  sample: SampleToWrite,
  imageOnly: boolean,
): Promise<void> {
  const { key, fields, facts } = sample;
  if (facts !== undefined) {
    await putStored(writer, rows, { key, fields, facts });
    return;
  }
  const cls = classOf(fields);
  const stored = withClass(fields, cls, imageOnly);
  const imageField = imageFieldOf(stored.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
  const factsOf = (payloadOf: PayloadOf) => {
    const image = payloadOf(imageField);
    const header = image === undefined ? null : headerOf(image);
    const { width, height, orientation } = header ?? { width: 0, height: 0, orientation: 1 };
    return { source: '', width, height, orientation, cls };
  };
  if (goesInPieces(payloadBytes(sample), writer)) {
    await putLargeSample(writer, rows, key, stored, imageField === undefined ? [] : [imageField], factsOf);
  } else putSample(writer, rows, key, stored, factsOf);
}

/** Longer text cannot be a class number. */
const MAX_CLASS_BYTES = 64;

function classOf(fields: readonly NewField[]): number {
  const field = fields.find(({ name }) => name === 'cls');
  if (field === undefined || field.bytes > MAX_CLASS_BYTES) return -1;
  const text = new Uint8Array(field.bytes);
  field.put(text);
  return classNumber(text);
}

/** Upper limit of the sample's size in a tar, which decides where all layouts are split into shards. */
function tarBytes({ key, fields }: SampleToWrite): number {
  return fields.reduce((sum, { name, bytes }) => sum + entryBytes(bytes, Buffer.byteLength(`${key}.${name}`)), 0);
}

function payloadBytes({ fields }: SampleToWrite): number {
  return fields.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** True if the key is in the current shard or in an earlier one. Called only if its hash occurred before. */
async function hasKey(
  key: string,
  rows: IndexRows | null,
  output: string,
  shards: readonly ShardRecord[],
): Promise<boolean> {
  if (rows?.keys.includes(key)) return true;
  for (const { file } of shards) {
    const { key: keys } = await readShardIndex(path.join(output, indexPathOf(file)), { parts: ['key'] });
    if (keys.includes(key)) return true;
  }
  return false;
}
