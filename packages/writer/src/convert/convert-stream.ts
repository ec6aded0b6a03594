import type { Readable } from 'node:stream';
import { DuplicateKeyError } from '@shardtool/format';
import type { Naming } from '../plan/naming.js';
import type { ShardRecord, ShardTarget } from '../shard/new-shard.js';
import { type SampleCut, writeSamples } from '../shard/write-samples.js';
import { streamSamples } from './stream-samples.js';
import { StreamedPayloads } from './streamed-payloads.js';

/** What a stream became. */
export interface ConvertedStream {
  readonly shards: readonly ShardRecord[];
  readonly skippedEntries: number;
}

/**
 * Writes the samples of a tar that comes as a stream to new shards, in the order of the stream. Of a large sample 64 MiB are in
 * memory, and the rest lies on the disk meanwhile. Throws what {@link streamSamples} and {@link writeSamples} throw, and
 * {@link DuplicateKeyError} for a key that came before.
 */
export async function convertStream(
  input: Readable,
  name: string,
  naming: Naming | null,
  target: ShardTarget,
  cut: Omit<SampleCut, 'refuseKey'>,
): Promise<ConvertedStream> {
  let skippedEntries = 0;
  const payloads = new StreamedPayloads(target.output);
  const samples = streamSamples(input, name, naming, payloads, target.maxSampleBytes, () => {
    skippedEntries++;
  });
  try {
    const refuseKey = (key: string) => {
      throw cameBefore(name, key);
    };
    const shards = await writeSamples(samples, target, { ...cut, refuseKey });
    return { shards, skippedEntries };
  } finally {
    await samples.return(undefined);
    payloads.close();
  }
}

function cameBefore(shard: string, key: string): DuplicateKeyError {
  const message =
    `${shard}: the key ${JSON.stringify(key)} came before, with others in between; ` +
    `a sample's files must follow each other, and each key must come once.`;
  return new DuplicateKeyError({ shard, key }, message);
}
