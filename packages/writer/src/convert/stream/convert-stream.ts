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

/** What a stream became. */
export interface ConvertedStream {
  readonly shards: readonly ShardRecord[];
  readonly skippedEntries: number;
  readonly skippedLinks: number;
}

/**
 * Writes the samples of a tar that comes as a stream to new shards, in the order of the stream. Of a large sample 64 MiB are in
 * memory, and the rest lies on the disk meanwhile. Throws DamagedShardError for an archive that is
 * damaged (TruncatedShardError: cut), EntryNameError, UnsupportedEntryError, SampleSizeError, DiskFullError, FileError, and
 * {@link DuplicateKeyError} for a key that came before. `classes`: where these are known, the class of a sample is its first folder.
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
      const message = `${shard}: the sample ${JSON.stringify(key)} has a class of its own in the field "cls" beside that of the tar that it lies in; extract it, and convert the inner tars.`;
      throw new UnsupportedShardError({ shard, key }, message);
    }
    const name = folderClass(key) ?? '';
    yield { key, fields: withClass(fields, numbers.get(name) ?? refuseClass(key, name), false) };
  }
}

function cameBefore(shard: string, key: string): DuplicateKeyError {
  const message =
    `${shard}: the key ${JSON.stringify(key)} came before, with others in between; ` +
    `a sample's files must follow each other, and each key must come once.`;
  return new DuplicateKeyError({ shard, key }, message);
}
