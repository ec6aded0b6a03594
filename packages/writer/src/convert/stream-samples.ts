import type { Readable } from 'node:stream';
import { DamagedShardError, DuplicateKeyError, ShardtoolError, splitEntryName, streamFiles } from '@shardtool/format';
import { plainBytes } from './plain-bytes.js';

/** One sample out of a stream. */
export interface StreamedSample {
  readonly key: string;
  /** In the order of the stream; a payload is in the pieces in which it came. */
  readonly fields: StreamedField[];
}

export interface StreamedField {
  readonly name: string;
  readonly bytes: number;
  readonly pieces: readonly Uint8Array[];
}

/**
 * Yields the samples of a tar that comes as a stream, gzip or not, grouped as WebDataset does it: neighbours with one key.
 * Holds one sample. `name` is the stream's, for messages; `onSkipped` hears of files that belong to no sample. Throws a
 * tagged error for a damaged or cut archive, for links and devices, for names that lead out of their folder and for a
 * field that comes twice in a sample.
 */
export async function* streamSamples(
  input: Readable,
  name: string,
  onSkipped: () => void,
): AsyncGenerator<StreamedSample> {
  let sample: StreamedSample | null = null;
  try {
    for await (const { name: path, bytes, pieces } of streamFiles(plainBytes(input), name)) {
      const named = splitEntryName(path);
      if (named === null) {
        onSkipped();
        continue;
      }
      if (sample !== null && sample.key !== named.key) {
        yield sample;
        sample = null;
      }
      sample ??= { key: named.key, fields: [] };
      addField(sample, { name: named.field, bytes, pieces }, name);
    }
  } catch (error) {
    throw error instanceof ShardtoolError ? error : unreadable(name, error as Error);
  }
  if (sample !== null) yield sample;
}

function addField(sample: StreamedSample, field: StreamedField, shard: string): void {
  const { key } = sample;
  if (sample.fields.some(({ name }) => name === field.name)) {
    const message = `${shard}: sample ${JSON.stringify(key)} has the field "${field.name}" twice; write the archive anew with one of them.`;
    throw new DuplicateKeyError({ shard, key }, message);
  }
  sample.fields.push(field);
}

function unreadable(shard: string, cause: Error): DamagedShardError {
  const message = `${shard}: this cannot be read as a tar (${cause.message}); it is damaged or was cut off: fetch or write it again.`;
  return new DamagedShardError({ shard }, message, { cause });
}
