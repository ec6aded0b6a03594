import path from 'node:path';
import type { Readable } from 'node:stream';
import {
  classNumber,
  DuplicateKeyError,
  headerOf,
  type IndexRows,
  imageFieldOf,
  indexPathOf,
  readShardIndex,
  type ShardWriter,
} from '@shardtool/format';
import { entryBytes } from '../plan/plan-shards.js';
import { goesInPieces, putLargeSample } from '../shard/large-sample.js';
import { createShard, type ShardRecord, type ShardTarget } from '../shard/new-shard.js';
import { type NewField, type PayloadOf, putSample, withClass } from '../shard/put-sample.js';
import { SeenKeys } from './seen-keys.js';
import { type StreamedSample, streamSamples } from './stream-samples.js';
import { StreamedPayloads } from './streamed-payloads.js';

/** Where shards made from a stream are cut, and how they are called. */
export interface StreamCut {
  readonly maxShardBytes: number;
  readonly maxShardSamples: number;
  /** What shard `number` is called; it is about to be made. */
  begin(number: number): Promise<string>;
  /** It is whole. Its index is read again where a hash of a key comes again. */
  made(stem: string): Promise<void>;
  /** Called after each sample with the bytes of its payloads; throws where the work is to end. */
  report(samples: number, bytes: number): void;
}

/** What a stream became. */
export interface ConvertedStream {
  readonly shards: readonly ShardRecord[];
  readonly skippedEntries: number;
}

/**
 * Writes the samples of a tar that comes as a stream to new shards, in the order of the stream. Memory holds one sample
 * (of a large one 64 MiB, the rest lies on the disk meanwhile), the write buffer, the index of the shard in hand, and some 20 bytes for each key. Throws what {@link streamSamples} and
 * {@link createShard} throw, and {@link DuplicateKeyError} for a key that came before.
 */
export async function convertStream(
  input: Readable,
  name: string,
  target: ShardTarget,
  cut: StreamCut,
): Promise<ConvertedStream> {
  const shards: ShardRecord[] = [];
  const seen = new SeenKeys();
  let skippedEntries = 0;
  const payloads = new StreamedPayloads(target.output);
  const samples = streamSamples(input, name, payloads, target.maxSampleBytes, () => {
    skippedEntries++;
  });
  try {
    let next = await samples.next();
    while (!next.done) {
      const stem = await cut.begin(shards.length);
      const record = await createShard(target, stem, 0, async (writer, rows) => {
        let bytes = 0;
        while (!next.done && rows.samples < cut.maxShardSamples) {
          const sample = next.value;
          bytes += tarBytes(sample);
          if (rows.samples > 0 && bytes > cut.maxShardBytes) break;
          if (seen.add(sample.key) && (await hasKey(sample.key, rows, target.output, shards))) {
            throw cameBefore(name, sample.key);
          }
          await writeSample(writer, rows, sample, target.layout.imageOnly ?? false);
          cut.report(1, payloadBytes(sample));
          next = await samples.next();
        }
        return new Map();
      });
      shards.push(record);
      await cut.made(stem);
    }
  } finally {
    await samples.return(undefined);
    payloads.close();
  }
  return { shards, skippedEntries };
}

async function writeSample(
  writer: ShardWriter,
  rows: IndexRows,
  sample: StreamedSample,
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
function tarBytes({ key, fields }: StreamedSample): number {
  return fields.reduce((sum, { name, bytes }) => sum + entryBytes(bytes, Buffer.byteLength(`${key}.${name}`)), 0);
}

function payloadBytes({ fields }: StreamedSample): number {
  return fields.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Whether a key stands in the shard in hand or in one that was written. Asked only where its hash came before. */
async function hasKey(key: string, rows: IndexRows, output: string, shards: readonly ShardRecord[]): Promise<boolean> {
  if (rows.keys.includes(key)) return true;
  for (const { file } of shards) {
    const { key: keys } = await readShardIndex(path.join(output, indexPathOf(file)), { parts: ['key'] });
    if (keys.includes(key)) return true;
  }
  return false;
}

function cameBefore(shard: string, key: string): DuplicateKeyError {
  const message =
    `${shard}: the key ${JSON.stringify(key)} came before, with others in between; ` +
    `a sample's files must follow each other, and each key must come once.`;
  return new DuplicateKeyError({ shard, key }, message);
}
