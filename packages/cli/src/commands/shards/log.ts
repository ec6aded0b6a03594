import { escapeControls } from '@shardtool/base/text';
import type { DatasetVersion } from '@shardtool/writer';
import { command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatSize } from '../../terminal/size.js';

export const logCommand = command({
  name: 'log',
  summary: 'List the versions of a dataset, the current one first',
  details: 'Each change keeps the version before it, until "gc" removes it. Open one with --at VERSION.',
  arguments: { dataset: BASE_ARGUMENT },
  options: {},
  examples: [
    ['$0 log shards', 'Version, time, command and size of each'],
    ['$0 ls shards --at 3f9c2a', 'Print the dataset as it was at a version'],
  ],
  handler: async ({ dataset: location, json }) => {
    const { listVersions } = await import('@shardtool/writer');
    const versions = await listVersions(location);
    await print(json ? JSON.stringify(versions) : versions.map(line).join('\n'));
  },
});

function line({ version, time, command: made, isCurrent, isKept, samples, shards, bytes }: DatasetVersion): string {
  const size =
    samples === null || shards === null || bytes === null
      ? ''
      : `${countOf(samples, 'sample')}, ${countOf(shards, 'shard')}, ${formatSize(bytes)}`;
  const notes = [...(isCurrent ? ['current'] : []), ...(isKept ? [] : ['removed'])].join(', ');
  return [version.slice(0, 16), time ?? '-', escapeControls(made ?? 'pack'), size, notes].join('\t').trimEnd();
}
