import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { share } from '../../options/flags.js';
import { overlayNameFlag, PARENT_FLAG } from '../../options/overlay-flags.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const splitCommand = command({
  name: 'split',
  summary: 'Split a dataset into train and val by the hash of its keys; shards do not change',
  details:
    'The split is an overlay, a small file next to the shards. Pass --split NAME to any command or loader to read one part.',
  arguments: { dataset: BASE_ARGUMENT },
  options: {
    val: {
      ...share('--val', 'Share of the split val, such as 10% or 0.1'),
      group: 'Samples',
      isCommon: true,
    },
    test: { ...share('--test', 'Share of the split test'), group: 'Samples', isCommon: true },
    by: {
      choices: ['class'] as const,
      requiresArg: true,
      group: 'Samples',
      isCommon: true,
      describe: 'Stratify: keep the shares within each class',
    },
    group: {
      type: 'string',
      requiresArg: true,
      group: 'Samples',
      placeholder: 'COLUMN',
      isCommon: true,
      describe: 'Samples with equal values in this column stay together, such as a patient or a video',
    },
    name: overlayNameFlag('split'),
    parent: PARENT_FLAG,
  },
  examples: [
    ['$0 split shards --val 10% --by class', 'A tenth of each class becomes val'],
    ['$0 bench shards --split val', 'Use it with any command or loader'],
  ],
  handler: async ({ dataset: location, val, test, by, group, name, parent, json }) => {
    const given = Object.entries({ val, test }).filter((entry): entry is [string, number] => entry[1] !== undefined);
    if (given.length === 0)
      throw new UsageError('Missing option: --val or --test. Give the share of a split, such as --val 0.1.');
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
        : `${escapeControls(report.file)} already is this split: ${splits}.`,
    );
  },
});
