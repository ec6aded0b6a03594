import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { COPY_FLAG, copyView } from '../../options/output-flags.js';
import { overlayNameFlag, PARENT_FLAG } from '../../options/overlay-flags.js';
import { newClassLines } from '../../terminal/new-classes.js';
import { print } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const relabelCommand = command({
  name: 'relabel',
  summary: 'Change classes and columns of samples with an overlay; shards do not change',
  details: 'An overlay is a small file next to the shards. Pass --overlay NAME to any command or loader to apply it.',
  arguments: { dataset: BASE_ARGUMENT },
  options: {
    labels: {
      type: 'string',
      requiresArg: true,
      demandOption: true,
      group: 'Classes and labels',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'CSV or JSON Lines: key,class,... or path,class,...',
    },
    name: overlayNameFlag('relabel'),
    parent: PARENT_FLAG,
    copy: COPY_FLAG,
  },
  examples: [
    ['$0 relabel shards --labels new.csv', 'Writes the overlay "relabel"'],
    ['$0 ls shards --overlay relabel', 'Use it with any command or loader'],
  ],
  handler: async ({ dataset: location, labels, name, parent, copy, json }) => {
    const [{ addOverlay }, { openPackedLabels }] = await Promise.all([
      import('@shardtool/reader'),
      import('@shardtool/writer'),
    ]);
    const note = `--labels ${labels}`;
    const report = await addOverlay(location, { name, parent, labels: await openPackedLabels(labels), note });
    const copied = copy === undefined ? [] : [await copyView(location, { overlay: name }, copy)];
    if (json) return print(JSON.stringify(report));
    const { file, relabelled, set } = report;
    const made = `${countOf(relabelled, 'sample')} with another class, columns set for ${countOf(set, 'sample')}`;
    await print([`Made ${escapeControls(file)}: ${made}.`, ...newClassLines(report), ...copied].join('\n'));
  },
});
