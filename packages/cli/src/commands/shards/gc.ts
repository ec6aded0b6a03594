import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { duration, wholeNumber } from '../../options/flags.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { stoppable } from '../../terminal/interrupt.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatSize } from '../../terminal/size.js';

export const gcCommand = command({
  name: 'gc',
  summary: 'Remove earlier versions of a dataset, and the shards that only they need',
  details:
    'With both options, a version is removed if neither keeps it. Loaders that have a removed version open get errors. Shards of changes that were killed are removed too; in a bucket, after a day.',
  arguments: { dataset: BASE_ARGUMENT },
  options: {
    keep: {
      ...wholeNumber('--keep', 'Keep the newest versions, this many with the current one'),
      placeholder: 'COUNT',
      group: 'Input',
      isCommon: true,
    },
    'older-than': {
      ...duration('--older-than', 'Keep versions that were replaced less than this time ago, such as 30d or 12h'),
      group: 'Input',
      isCommon: true,
    },
    'dry-run': {
      type: 'boolean',
      default: false,
      isCommon: true,
      group: 'Output',
      describe: 'Only print what would be removed',
    },
    quiet: QUIET_FLAG,
  },
  examples: [
    ['$0 gc shards --keep 1', 'Keep only the current version'],
    ['$0 gc shards --keep 5 --older-than 30d', 'Keep 5 versions, and all of the last 30 days'],
  ],
  handler: async ({ dataset, keep, olderThan, dryRun, json, quiet }) => {
    const { collectGarbage } = await import('@shardtool/writer');
    const remedy = dryRun ? '' : ` Repeat the command to remove the rest from ${dataset}.`;
    const report = await stoppable(remedy, (signal) => collectGarbage(dataset, { keep, olderThan, dryRun, signal }));
    if (json) return print(JSON.stringify(report));
    if (quiet) return;
    const { keptVersions, removedVersions, removedFiles, removedBytes } = report;
    const verb = dryRun ? 'Would remove' : 'Removed';
    await print(
      `${verb} ${countOf(removedVersions.length, 'version')} and ${countOf(removedFiles, 'file')} (${formatSize(removedBytes)}) of ${escapeControls(dataset)}; ${countOf(keptVersions.length, 'version')} ${keptVersions.length === 1 ? 'is' : 'are'} kept.`,
    );
  },
});
