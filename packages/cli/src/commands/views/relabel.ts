import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { COPY_FLAG, copyView } from '../../options/output-flags.js';
import { newClassLines } from '../../terminal/new-classes.js';
import { print } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const relabelCommand = command({
  name: 'relabel',
  positionals: '<dataset>',
  describe: 'Give samples other classes and columns, as an overlay; no shard changes',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .option('labels', {
        type: 'string',
        requiresArg: true,
        demandOption: true,
        describe: 'CSV or JSON Lines: key,class,... or path,class,...',
      })
      .option('name', {
        type: 'string',
        requiresArg: true,
        default: 'relabel',
        describe: 'Name of the overlay that it becomes',
      })
      .option('parent', { type: 'string', requiresArg: true, describe: 'The overlay that it lies on' })
      .option('copy', COPY_FLAG)
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object' })
      .example('$0 relabel shards --labels new.csv', 'Then: --overlay relabel'),
  handler: async ({ dataset: location, labels, name, parent, copy, json }) => {
    const [{ addOverlay }, { readPackedLabels }] = await Promise.all([
      import('@shardtool/reader'),
      import('@shardtool/writer'),
    ]);
    const note = `--labels ${labels}`;
    const report = await addOverlay(location, { name, parent, labels: await readPackedLabels(labels), note });
    const copied = copy === undefined ? [] : [await copyView(location, { overlay: name }, copy)];
    if (json) return print(JSON.stringify(report));
    const { file, relabelled, set } = report;
    const made = `${countOf(relabelled, 'sample')} of another class, columns set of ${countOf(set, 'sample')}`;
    await print([`Made ${escapeControls(file)}: ${made}.`, ...newClassLines(report), ...copied].join('\n'));
  },
});
