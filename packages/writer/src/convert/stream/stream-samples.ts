import type { Readable } from 'node:stream';
import { DamagedShardError, DuplicateKeyError, ShardtoolError } from '@shardtool/base';
import { type SampleName, sampleTooLarge, splitEntryName } from '@shardtool/format';
import type { Naming } from '../../plan/naming.js';
import type { NewField } from '../../shard/put-sample.js';
import { streamNested } from '../input/nested-tars.js';
import { plainBytes } from '../plain-bytes.js';
import type { StreamedPayloads } from './streamed-payloads.js';

/** One sample of a stream. */
export interface StreamedSample {
  readonly key: string;
  /** The fields, in the order of the stream; valid until the next sample is requested. */
  readonly fields: Required<NewField>[];
}

/**
 * Yields the samples of a tar that is read as a stream, compressed with gzip or not, grouped as in WebDataset:
 * consecutive files with one key. For a tar of tars, yields the samples of each inner tar. `payloads` stores the
 * payloads of one sample at a time. `name` is the name of the stream for messages. `onSkipped` is called for files that
 * belong to no sample, and for links. Throws a tagged error for a damaged or truncated archive, for devices, for names
 * that lead out of their folder, for a repeated field in a sample, and for a sample of more than `maxSampleBytes`.
 */
export async function* streamSamples(
  input: Readable,
  name: string,
  naming: Naming | null,
  payloads: StreamedPayloads,
  maxSampleBytes: number,
  onSkipped: (isLink: boolean) => void,
): AsyncGenerator<StreamedSample> {
  let sample: StreamedSample | null = null;
  try {
    for await (const { name: path, bytes, pieces, link } of streamNested(plainBytes(input, name), name)) {
      if (link !== undefined) {
        onSkipped(true);
        continue;
      }
      const named = nameOf(path.startsWith('./') ? path.slice(2) : path, naming);
      if (named === null) {
        onSkipped(false);
        continue;
      }
      if (sample !== null && sample.key !== named.key) {
        yield sample;
        sample = null;
        payloads.forget();
      }
      sample ??= { key: named.key, fields: [] };
      const total = sample.fields.reduce((sum, field) => sum + field.bytes, bytes);
      if (total > maxSampleBytes) throw sampleTooLarge(name, named.key, total, maxSampleBytes);
      refuseTwice(sample, named.field, name);
      sample.fields.push({ name: named.field, bytes, ...(await payloads.take(bytes, pieces)) });
    }
  } catch (error) {
    throw error instanceof ShardtoolError ? error : unreadable(name, error as Error);
  }
  if (sample !== null) yield sample;
}

/** Names a file as WebDataset does, or as packing does. */
function nameOf(path: string, naming: Naming | null): SampleName | null {
  if (naming === null) return splitEntryName(path);
  const extraField = naming.extraFieldOf(path);
  if (extraField === null) return naming.nameOf(path);
  if (extraField.stem === null) return null;
  // With any extension, the key is that of the stem.
  return { key: naming.keyOf(`${extraField.stem}.x`), field: extraField.field };
}

function refuseTwice({ key, fields }: StreamedSample, field: string, shard: string): void {
  if (!fields.some(({ name }) => name === field)) return;
  const message = `${shard}: sample ${JSON.stringify(key)} has the field "${field}" twice; write the archive again with only one of them.`;
  throw new DuplicateKeyError({ shard, key }, message);
}

function unreadable(shard: string, cause: Error): DamagedShardError {
  const message = `${shard}: this cannot be read as a tar (${cause.message}); it is damaged or truncated: download or write it again.`;
  return new DamagedShardError({ shard }, message, { cause });
}
