import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { readKeys } from '../../options/dataset-flags.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { foundFault, print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const eraseCommand = command({
  name: 'erase',
  summary: 'Remove samples for good: from shards, indexes and overlays, and from later appends',
  details:
    'Only shards with these samples are written again. Earlier versions keep the bytes until "gc" removes them; the command names them.',
  arguments: { dataset: BASE_ARGUMENT },
  options: {
    keys: {
      type: 'string',
      requiresArg: true,
      group: 'Samples',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'Erase the samples whose keys are in this text file, one per line',
    },
    where: {
      type: 'string',
      requiresArg: true,
      group: 'Samples',
      placeholder: 'EXPRESSION',
      isCommon: true,
      describe: 'Erase the samples that match: "score < 0.1"',
    },
    verify: {
      type: 'boolean',
      default: false,
      group: 'Output',
      isCommon: true,
      describe: 'Exit with 1 if any kept version still has one of the samples, by the indexes of all shards',
    },
    quiet: QUIET_FLAG,
  },
  examples: [
    ['$0 erase shards --keys takedown.txt', 'Then: shardtool gc shards --keep 1'],
    ['$0 erase shards --keys takedown.txt --verify', 'After gc: whether nothing is left'],
  ],
  handler: async ({ dataset, keys: file, where, verify, json, quiet }) => {
    if ((file === undefined) === (where === undefined)) throw new UsageError('Give either --keys or --where.');
    const { eraseSamples } = await import('@shardtool/writer');
    const keys = file === undefined ? undefined : await readKeys('--keys', file);
    const report = await eraseSamples(dataset, { keys, where, verify });
    const { erased, resumed, missing, rewrittenShards, removedShards, heldBy, searchedShards } = report;
    if (verify && heldBy.length > 0) foundFault();
    if (json) return print(JSON.stringify(report));
    if (quiet && !(verify && heldBy.length > 0)) return;
    const shown = escapeControls(dataset);
    const held = heldBy.map((version) => version.slice(0, 16)).join(', ');
    await print(
      [
        `Erased ${countOf(erased, 'sample')} of ${shown}: ${countOf(rewrittenShards, 'shard')} written again, ${countOf(removedShards, 'shard')} removed.`,
        ...(resumed > 0 ? [`  ${countOf(resumed, 'sample')} of them from an erasure that was interrupted`] : []),
        ...(missing > 0
          ? [`  ${countOf(missing, 'key')} not in the current version; later appends skip them too`]
          : []),
        ...(heldBy.length > 0
          ? [`  still in ${countOf(heldBy.length, 'version')} (${held}): run "shardtool gc ${shown} --keep 1"`]
          : []),
        ...(searchedShards !== null && heldBy.length === 0
          ? [`  ${countOf(searchedShards, 'shard')} of all versions searched: nothing is left`]
          : []),
      ].join('\n'),
    );
  },
});
