import type { Sample } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_FLAGS, openFilesGiven } from '../../options/dataset-flags.js';
import { UsageError, write } from '../../terminal/outcome.js';

const WRITE_BYTES = 64 << 20;

export const catCommand = command({
  name: 'cat',
  positionals: '<dataset> <key> [field]',
  describe: "Write one field of a sample to standard output; by default the sample's image",
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards, or one tar' })
      .positional('key', {
        type: 'string',
        demandOption: true,
        describe: 'Key of the sample, as ls --samples shows it',
      })
      .options(DATASET_FLAGS)
      .positional('field', { type: 'string', describe: 'Name of the field: jpg, cls, json ...' })
      .example('$0 cat shards cat/cat_001 > cat.jpg', 'The image')
      .example('$0 cat shards cat/cat_001 cls', 'Its class number'),
  handler: async ({ dataset: location, key, field, ...seen }) => {
    const { imageFields } = await import('@shardtool/format');
    await using dataset = await openFilesGiven(location, seen);
    const sample = await dataset.get(key);
    const name = field ?? imageFields(Object.keys(sample.fields))[0];
    if (name === undefined) {
      throw new UsageError(`Sample "${key}" has no image; name one of its fields: ${namesIn(sample)}.`);
    }
    const bytes = sample.fields[name];
    if (bytes === undefined) {
      throw new UsageError(`Sample "${key}" has no field "${name}"; its fields are ${namesIn(sample)}.`);
    }
    // The system takes less than 2^31 bytes at once.
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) await write(bytes.subarray(at, at + WRITE_BYTES));
  },
});

function namesIn(sample: Sample): string {
  return Object.keys(sample.fields).join(', ');
}
