import { escapeControls } from '@shardtool/base/text';
import { COMPACT_OPTIONS } from '@shardtool/writer/option-table';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { flagsOf } from '../../options/option-flags.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { stoppable } from '../../terminal/interrupt.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatSize } from '../../terminal/size.js';

export const compactCommand = command({
  name: 'compact',
  summary: 'Join small consecutive shards of a dataset to larger ones',
  details:
    'The result is a new version with the same samples in the same order. Shards of at least half the maximum size stay. The small shards remain until "gc" removes the versions that name them.',
  arguments: { dataset: BASE_ARGUMENT },
  options: { ...flagsOf(COMPACT_OPTIONS), quiet: QUIET_FLAG },
  examples: [
    ['$0 compact shards', 'After many small appends'],
    ['$0 compact s3://bucket/shards --max-shard-bytes 1GiB --dry-run', 'What would be joined'],
  ],
  handler: async ({ dataset, maxShardBytes, maxShardSamples, staging, dryRun, json, quiet }) => {
    const { compactDataset } = await import('@shardtool/writer');
    const shown = escapeControls(dataset);
    const remedy = dryRun
      ? ''
      : ` The current version of ${dataset} is unchanged, but files of the unfinished compaction may remain: repeat the command to finish it.`;
    const report = await stoppable(remedy, (signal) =>
      compactDataset(dataset, { maxShardBytes, maxShardSamples, staging, dryRun, signal }),
    );
    if (json) return print(JSON.stringify(report));
    if (quiet) return;
    const { shardsBefore, shards, joinedShards, madeShards, madeBytes } = report;
    if (madeShards === 0) {
      await print(`Nothing to join in ${shown}: no two small shards are consecutive.`);
      return;
    }
    const verb = dryRun ? 'Would join' : 'Joined';
    await print(
      `${verb} ${countOf(joinedShards, 'shard')} of ${shown} to ${madeShards} (${formatSize(madeBytes)}): ${countOf(shardsBefore, 'shard')} before, ${shards} now.`,
    );
  },
});
