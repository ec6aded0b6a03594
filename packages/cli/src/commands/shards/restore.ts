import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatSize } from '../../terminal/size.js';

export const restoreCommand = command({
  name: 'restore',
  summary: 'Make an earlier version of a dataset the current one',
  details:
    'No shard is written or removed. The version that was current stays in the log, and can be restored in turn.',
  arguments: {
    dataset: BASE_ARGUMENT,
    version: {
      type: 'string',
      demandOption: true,
      describe: 'The version, as "log" lists it: at least 6 digits of it',
    },
  },
  options: { quiet: QUIET_FLAG },
  examples: [['$0 restore shards 3f9c2a', 'Roll back']],
  handler: async ({ dataset, version, json, quiet }) => {
    const { restoreVersion } = await import('@shardtool/writer');
    const report = await restoreVersion(dataset, version);
    if (json) return print(JSON.stringify(report));
    if (quiet) return;
    const { samples, shards, bytes, isChanged } = report;
    const size = `${countOf(samples, 'sample')} in ${countOf(shards, 'shard')} (${formatSize(bytes)})`;
    const shown = `${escapeControls(dataset)} ${isChanged ? 'is' : 'was already'} at version ${report.version.slice(0, 16)}`;
    await print(
      `${shown}: ${size}.${isChanged ? ` Undo: shardtool restore ${escapeControls(dataset)} ${report.replaced.slice(0, 16)}` : ''}`,
    );
  },
});
