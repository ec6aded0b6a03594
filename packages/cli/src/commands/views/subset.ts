import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { readKeys } from '../../options/dataset-flags.js';
import { share } from '../../options/flags.js';
import { COPY_FLAG, copyView } from '../../options/output-flags.js';
import { print } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const subsetCommand = command({
  name: 'subset',
  positionals: '<dataset> <name>',
  describe: 'Name a part of a dataset, as an overlay; no shard changes',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .positional('name', { type: 'string', demandOption: true, describe: 'Name of the overlay that it becomes' })
      .option('where', {
        type: 'string',
        requiresArg: true,
        describe: 'Samples for which this holds: "width >= 256 and cls in (3, 7)"',
      })
      .option('classes', {
        type: 'string',
        array: true,
        requiresArg: true,
        describe: 'Samples of these classes, by name: cat,dog',
        coerce: (given: readonly string[]) => given.flatMap((names) => names.split(',')),
      })
      .option('keys', { type: 'string', requiresArg: true, describe: 'The samples whose keys stand in this file' })
      .option(
        'share',
        share(
          '--share',
          'A share of the samples, as 10%; the same ones each time, by the hash of their keys, so of few it is not exact',
        ),
      )
      .option('parent', { type: 'string', requiresArg: true, describe: 'The overlay that it lies on' })
      .option('copy', COPY_FLAG)
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object' })
      .example('$0 subset shards tenth --share 10%', 'A tenth of the samples')
      .example('$0 subset shards cats --classes cat --copy cat-shards', 'As shards of its own, too'),
  handler: async ({ dataset: location, name, where, classes, keys, share: part, parent, copy, json }) => {
    const { subsetDataset } = await import('@shardtool/reader');
    const asked = { where, classes: classes?.join(','), keys, share: part };
    const report = await subsetDataset(location, {
      name,
      parent,
      where,
      classes,
      keys: keys === undefined ? undefined : await readKeys('--keys', keys),
      share: part,
      note: Object.entries(asked)
        .flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag} ${value}`]))
        .join(' '),
    });
    const copied = copy === undefined ? [] : [await copyView(location, { overlay: name }, copy)];
    if (json) return print(JSON.stringify(report));
    await print([`Made ${escapeControls(report.file)}: ${countOf(report.samples, 'sample')}.`, ...copied].join('\n'));
  },
});
