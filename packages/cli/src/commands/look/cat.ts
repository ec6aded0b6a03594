import type { Sample } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openFilesGiven } from '../../options/dataset-flags.js';
import { print, UsageError, write } from '../../terminal/outcome.js';

const WRITE_BYTES = 64 << 20;

export const catCommand = command({
  name: 'cat',
  summary: 'Write one field of a sample to standard output, by default the image',
  arguments: {
    dataset: DATASET_ARGUMENT,
    key: { type: 'string', demandOption: true, describe: 'Key of the sample, as "ls --samples" lists it' },
    field: { type: 'string', describe: 'Name of the field, such as jpg, cls or json. Default: the image' },
  },
  options: DATASET_FLAGS,
  examples: [
    ['$0 cat shards cat/cat_001 > cat.jpg', 'The image'],
    ['$0 cat shards cat/cat_001 cls', 'The class number'],
  ],
  handler: async ({ dataset: location, key, field, json, ...seen }) => {
    const { imageFields } = await import('@shardtool/format');
    await using dataset = await openFilesGiven(location, seen);
    const sample = await dataset.get(key);
    const name = field ?? imageFields(Object.keys(sample.fields))[0];
    if (name === undefined) {
      throw new UsageError(`Sample "${key}" has no image; choose one of its fields: ${namesIn(sample)}.`);
    }
    const bytes = sample.fields[name];
    if (bytes === undefined) {
      throw new UsageError(`Sample "${key}" has no field "${name}"; its fields are ${namesIn(sample)}.`);
    }
    if (json) {
      const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
      return print(JSON.stringify({ shard: sample.shard, key, field: name, bytes: bytes.length, base64 }));
    }
    // The system takes less than 2^31 bytes at once.
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) await write(bytes.subarray(at, at + WRITE_BYTES));
  },
});

function namesIn(sample: Sample): string {
  return Object.keys(sample.fields).join(', ');
}
