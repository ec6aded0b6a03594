import { existsSync } from 'node:fs';
import { escapeControls } from '@shardtool/base/text';
import type { CommitReport } from '@shardtool/writer';
import { command } from '../../command.js';
import { OUTPUT_ARGUMENT } from '../../options/arguments.js';
import { share } from '../../options/flags.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countLine, fieldsLine } from '../../terminal/report-lines.js';
import { countOf, formatSize } from '../../terminal/size.js';

export const commitCommand = command({
  name: 'commit',
  summary: 'Finalize a dataset that was packed or written in parts',
  details:
    'The part that finishes last does this by itself. Use this command if that part was killed. If parts are missing, it lists them.',
  arguments: {
    output: {
      ...OUTPUT_ARGUMENT,
      describe: 'Folder with the shards of all parts, or a URL such as s3://bucket/shards',
    },
  },
  options: {
    'max-bad': {
      ...share('--max-bad', 'Share of bad images at which the commit fails'),
      group: 'Bad files',
      defaultDescription: '1%',
    },
    quiet: QUIET_FLAG,
  },
  examples: [['$0 commit shards', 'After the last pack --part, or the last Writer with a part']],
  handler: async ({ output, maxBad, json, quiet }) => {
    const [{ commitParts }, { isRemote }] = await Promise.all([
      import('@shardtool/writer'),
      import('@shardtool/storage'),
    ]);
    if (!isRemote(output) && !existsSync(output))
      throw new UsageError(`No such folder: ${output}. Give the folder that the parts were written to.`);
    const report = await commitParts(output, { maxBad });
    if (json) await print(JSON.stringify(report));
    else if (!quiet) await print(describe(report, output));
  },
});

function describe(report: CommitReport, output: string): string {
  const { samples, shards, bytes, quarantined, partialFields, wasCommitted } = report;
  const size = `${countOf(samples, 'sample')} in ${countOf(shards, 'shard')} (${formatSize(bytes)})`;
  if (wasCommitted) return `${escapeControls(output)} was committed already: ${size}.`;
  return [
    `Committed ${size} in ${escapeControls(output)}.`,
    ...countLine(
      quarantined,
      'image is bad and was skipped: quarantine.jsonl has the reason',
      'images are bad and were skipped: quarantine.jsonl has the reasons',
    ),
    ...fieldsLine(partialFields, samples),
  ].join('\n');
}
