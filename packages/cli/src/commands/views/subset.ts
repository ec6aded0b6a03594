import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { readKeys } from '../../options/dataset-flags.js';
import { share } from '../../options/flags.js';
import { COPY_FLAG, copyView } from '../../options/output-flags.js';
import { PARENT_FLAG } from '../../options/overlay-flags.js';
import { print } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const subsetCommand = command({
  name: 'subset',
  summary: 'Name a part of a dataset with an overlay; shards do not change',
  details:
    'An overlay is a small file next to the shards. Pass --overlay NAME to any command or loader to read the part.',
  arguments: {
    dataset: BASE_ARGUMENT,
    name: { type: 'string', demandOption: true, describe: 'Name of the overlay to write' },
  },
  options: {
    where: {
      type: 'string',
      requiresArg: true,
      group: 'Samples',
      placeholder: 'EXPRESSION',
      isCommon: true,
      describe: 'Only samples that match: "width >= 256 and cls in (3, 7)"',
    },
    classes: {
      type: 'string',
      array: true,
      requiresArg: true,
      group: 'Samples',
      placeholder: 'NAMES',
      isCommon: true,
      describe: 'Only samples of these classes: cat,dog',
      coerce: (given: readonly string[]) => given.flatMap((names) => names.split(',')),
    },
    keys: {
      type: 'string',
      requiresArg: true,
      group: 'Samples',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'Only samples whose keys are in this text file, one per line',
    },
    share: {
      ...share('--share', 'Share of the samples, such as 10%; chosen by the hash of their keys, so it is approximate'),
      group: 'Samples',
      isCommon: true,
    },
    parent: PARENT_FLAG,
    copy: COPY_FLAG,
  },
  examples: [
    ['$0 subset shards tenth --share 10%', 'A tenth of the samples'],
    ['$0 subset shards cats --classes cat --copy cat-shards', 'Also copy the part into new shards'],
  ],
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
