import { existsSync } from 'node:fs';
import { escapeControls } from '@shardtool/base/text';
import type { CommitReport } from '@shardtool/writer';
import { command } from '../../command.js';
import { share } from '../../options/flags.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countLine, fieldsLine } from '../../terminal/report-lines.js';
import { countOf, formatSize } from '../../terminal/size.js';

export const commitCommand = command({
  name: 'commit',
  positionals: '<output>',
  describe: 'Make a dataset of what parts have packed or written, where the last of them did not',
  builder: (yargs) =>
    yargs
      .positional('output', { type: 'string', demandOption: true, describe: 'Folder of the shards; s3:// too' })
      .option('max-bad', {
        ...share('--max-bad', 'Share of bad images at which it is refused'),
        defaultDescription: '1%',
      })
      .option('json', { type: 'boolean', default: false, describe: 'The report as one JSON object' })
      .option('quiet', QUIET_FLAG)
      .example('$0 commit shards', 'After the last of pack --part, or of Writer'),
  handler: async ({ output, maxBad, json, quiet }) => {
    const [{ commitParts }, { isRemote }] = await Promise.all([
      import('@shardtool/writer'),
      import('@shardtool/storage'),
    ]);
    if (!isRemote(output) && !existsSync(output)) throw new UsageError(`${output} does not exist.`);
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
      'image is bad and was left out: quarantine.jsonl says why',
      'images are bad and were left out: quarantine.jsonl says why',
    ),
    ...fieldsLine(partialFields, samples),
  ].join('\n');
}
