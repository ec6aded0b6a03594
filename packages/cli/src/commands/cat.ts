import { openDataset, type Sample, ShardtoolError } from '@shardtool/reader';
import { isImageField } from '@shardtool/format';
import type { CommandModule } from 'yargs';
import { UsageError, write } from '../outcome.js';

interface CatArguments {
  readonly dataset: string;
  readonly key: string;
  readonly field: string | undefined;
}

export const catCommand: CommandModule<object, CatArguments> = {
  command: 'cat <dataset> <key> [field]',
  describe: "Write one field of a sample to standard output; by default the sample's image",
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .positional('key', { type: 'string', demandOption: true, describe: 'Key of the sample, as ls --samples shows it' })
      .positional('field', { type: 'string', describe: 'Name of the field: jpg, cls, json ...' })
      .example('$0 cat shards cat/cat_001 > cat.jpg', 'The image')
      .example('$0 cat shards cat/cat_001 cls', 'Its class number'),
  handler: async ({ dataset: location, key, field }) => {
    const dataset = await openDataset(location);
    const sample = await dataset.get(key);
    const name = field ?? Object.keys(sample.fields).filter(isImageField).sort()[0];
    if (name === undefined) throw new UsageError(`Sample "${key}" has no image: name one of its fields, ${names(sample)}.`);
    const bytes = sample.fields[name];
    if (bytes === undefined) {
      throw new ShardtoolError({ shard: sample.shard, key }, `Sample "${key}" has no field "${name}"; it has ${names(sample)}.`);
    }
    await write(bytes);
    await dataset.close();
  },
};

function names(sample: Sample): string {
  return Object.keys(sample.fields).join(', ');
}
