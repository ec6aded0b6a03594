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
import { type NewField, type PayloadOf, putSample, withClass } from './put-sample.js';
import { SeenKeys } from './seen-keys.js';

/** A sample that comes from elsewhere than files. */
export interface SampleToWrite {
  readonly key: string;
  /** Valid until the next sample is asked for. */
  readonly fields: readonly NewField[];
  /** Values of label columns, by name; null where one lacks. */
  readonly columns?: ReadonlyMap<string, ColumnValue>;
}

/** Where shards of samples that come one after the other are cut, and how they are called. */
export interface SampleCut {
  readonly maxShardBytes: number;
  readonly maxShardSamples: number;
  /** What shard `number` is called; it is about to be made. */
  begin(number: number): Promise<string>;
  /** It is whole. Its index is read again where a hash of a key comes again. */
  made(stem: string, record: ShardRecord): Promise<void>;
  /** Called after each sample with the bytes of its payloads; throws where the work is to end. */
  report(samples: number, bytes: number): void;
  /** The key came before: throws, or leaves the sample out. */
  refuseKey(key: string): void;
}

/**
 * Writes samples to new shards, in the order in which they come. Memory holds one sample (of a large one 64 MiB), the
 * write buffer, the index of the shard in hand, and some 20 bytes for each key. Throws
 * SampleSizeError, EntryNameError or KeyLengthError for what the layout does not take, DiskFullError, FileError, and the
 * errors of `samples` as they are.
 */
export async function writeSamples(
  samples: AsyncIterator<SampleToWrite, unknown>,
  target: ShardTarget,
  cut: SampleCut,
): Promise<readonly ShardRecord[]> {
  const shards: ShardRecord[] = [];
  const seen = new SeenKeys();
  /** The next sample whose key is new. */
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
  const { key, fields } = sample;
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

/** Longer text is no number. */
const MAX_CLASS_BYTES = 64;

function classOf(fields: readonly NewField[]): number {
  const field = fields.find(({ name }) => name === 'cls');
  if (field === undefined || field.bytes > MAX_CLASS_BYTES) return -1;
  const text = new Uint8Array(field.bytes);
  field.put(text);
  return classNumber(text);
}

/** What the sample takes in a tar, at most: all layouts are cut by that. */
function tarBytes({ key, fields }: SampleToWrite): number {
  return fields.reduce((sum, { name, bytes }) => sum + entryBytes(bytes, Buffer.byteLength(`${key}.${name}`)), 0);
}

function payloadBytes({ fields }: SampleToWrite): number {
  return fields.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Whether a key stands in the shard in hand or in one that was written. Asked only where its hash came before. */
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
