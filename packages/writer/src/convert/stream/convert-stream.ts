import type { Readable } from 'node:stream';
import { DuplicateKeyError, UnsupportedShardError } from '@shardtool/base';
import { folderClass } from '../../plan/classes.js';
import type { Naming } from '../../plan/naming.js';
import type { ShardRecord, ShardTarget } from '../../shard/new-shard.js';
import { withClass } from '../../shard/put-sample.js';
import { type SampleCut, type SampleToWrite, writeSamples } from '../../shard/write-samples.js';
import { refuseClass } from '../input/recast.js';
import { type StreamedSample, streamSamples } from './stream-samples.js';
import { StreamedPayloads } from './streamed-payloads.js';

const CLASS_FIELD = 'cls';

/** Result of converting a stream. */
export interface ConvertedStream {
  readonly shards: readonly ShardRecord[];
  readonly skippedEntries: number;
  readonly skippedLinks: number;
}

/**
 * Writes the samples of a tar that is read as a stream to new shards, in the order of the stream. At most 64 MiB of a
 * large sample are in memory, and the rest is on disk until it is written. Throws DamagedShardError for a damaged
 * archive (TruncatedShardError for a truncated one), EntryNameError, UnsupportedEntryError, SampleSizeError,
 * DiskFullError, FileError, and {@link DuplicateKeyError} for a repeated key. `classes`: if these are known, the class
 * of a sample is its first folder.
 */
export async function convertStream(
  input: Readable,
  name: string,
  naming: Naming | null,
  classes: readonly string[] | null,
  target: ShardTarget,
  cut: Omit<SampleCut, 'refuseKey'>,
): Promise<ConvertedStream> {
  const skipped = { entries: 0, links: 0 };
  const payloads = new StreamedPayloads(target.output);
  const samples = streamSamples(input, name, naming, payloads, target.maxSampleBytes, (isLink) => {
    if (isLink) skipped.links++;
    else skipped.entries++;
  });
  try {
    const refuseKey = (key: string) => {
      throw cameBefore(name, key);
    };
    const classed = classes === null ? samples : withClasses(samples, classes, name);
    const shards = await writeSamples(classed, target, { ...cut, refuseKey });
    return { shards, skippedEntries: skipped.entries, skippedLinks: skipped.links };
  } finally {
    await samples.return(undefined);
    payloads.close();
  }
}

async function* withClasses(
  samples: AsyncIterable<StreamedSample>,
  classes: readonly string[],
  shard: string,
): AsyncGenerator<SampleToWrite> {
  const numbers = new Map(classes.map((name, number) => [name, number]));
  for await (const { key, fields } of samples) {
    if (fields.some(({ name }) => name === CLASS_FIELD)) {
      const message = `${shard}: the sample ${JSON.stringify(key)} has a class in the field "cls" in addition to the name of its inner tar; extract the archive, and convert the inner tars.`;
      throw new UnsupportedShardError({ shard, key }, message);
    }
    const name = folderClass(key) ?? '';
    yield { key, fields: withClass(fields, numbers.get(name) ?? refuseClass(key, name), false) };
  }
}

function cameBefore(shard: string, key: string): DuplicateKeyError {
  const message =
    `${shard}: the key ${JSON.stringify(key)} is repeated after other samples; ` +
    `the files of a sample must be consecutive, and each key unique.`;
  return new DuplicateKeyError({ shard, key }, message);
}
