import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { share } from '../../options/flags.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const splitCommand = command({
  name: 'split',
  positionals: '<dataset>',
  describe: 'Split a dataset into train and val by the hash of its keys; no shard changes',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .option('val', share('--val', 'Share of the split val, as 0.1 or 10%'))
      .option('test', share('--test', 'Share of the split test'))
      .option('by', {
        choices: ['class'] as const,
        requiresArg: true,
        describe: 'The shares hold in each class',
      })
      .option('group', {
        type: 'string',
        requiresArg: true,
        describe: 'A column whose equal values stay on one side: patient, video',
      })
      .option('name', {
        type: 'string',
        requiresArg: true,
        default: 'split',
        describe: 'Name of the overlay that it becomes',
      })
      .option('parent', { type: 'string', requiresArg: true, describe: 'The overlay that it lies on' })
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object' })
      .example('$0 split shards --val 0.1 --by class', 'A tenth of each class')
      .example('$0 bench shards --split val', 'Every command and the loader take it'),
  handler: async ({ dataset: location, val, test, by, group, name, parent, json }) => {
    const given = Object.entries({ val, test }).filter((entry): entry is [string, number] => entry[1] !== undefined);
    if (given.length === 0) throw new UsageError('split takes --val or --test, as --val 0.1.');
    const { splitDataset } = await import('@shardtool/reader');
    const report = await splitDataset(location, {
      shares: new Map(given),
      byClass: by === 'class',
      group,
      name,
      parent,
    });
    if (json) return print(JSON.stringify(report));
    const splits = report.splits
      .map((split) => `${escapeControls(split.name)} ${countOf(split.samples, 'sample')}`)
      .join(', ');
    await print(
      report.isNew
        ? `Made ${escapeControls(report.file)}: ${splits}.`
        : `${escapeControls(report.file)} is this split already: ${splits}.`,
    );
  },
});
