import type { VerifyReport } from '@shardtool/writer';
import { command } from '../command.js';
import { wholeNumber } from '../flags.js';
import { foundFault, write } from '../outcome.js';
import { ProgressView } from '../progress-view.js';
import { countOf, formatCount, formatSize } from '../size.js';

export const verifyCommand = command({
  name: 'verify',
  positionals: '<dataset>',
  describe: 'Check headers, checksums and counts; exit 1 and a line for each damaged sample',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards, or one tar' })
      .option('decode', { type: 'boolean', default: false, describe: 'Also decode every image whole' })
      .option('workers', wholeNumber('--workers', 'Threads; by default one a core', { to: 1024 }))
      .option('json', {
        type: 'boolean',
        default: false,
        describe: 'One JSON object a line: the faults, then the totals',
      })
      .option('quiet', { type: 'boolean', default: false, describe: 'Print nothing when all is well' })
      .example('$0 verify shards', 'Every byte against its checksum')
      .example('$0 verify shards --decode', 'And every image decoded whole'),
  handler: async ({ dataset, decode, workers, json, quiet }) => {
    const { verify } = await import('@shardtool/writer');
    const view = json || quiet ? null : new ProgressView();
    const report = await verify(dataset, {
      decode,
      ...(workers !== undefined && { workers }),
      onFault: (fault) => {
        view?.hide();
        const { shard, key, reason } = fault;
        const line = [shard, ...(key === undefined ? [] : [key]), reason].join('\t');
        void write(json ? `${JSON.stringify(fault)}\n` : `${line}\n`);
      },
      ...(view !== null && {
        onProgress: ({ shards, totalShards }) =>
          view.show({
            stage: 'verify',
            done: shards,
            total: totalShards,
            text: `${formatCount(shards)} of ${countOf(totalShards, 'shard')}`,
          }),
      }),
    }).finally(() => view?.hide());
    if (report.faults > 0) foundFault();
    if (json) await write(`${JSON.stringify(report)}\n`);
    else if (report.faults > 0 || !quiet) await write(`${describe(report, decode)}\n`);
  },
});

function describe(report: VerifyReport, decode: boolean): string {
  const { shards, samples, bytes, faults, damagedSamples, warnings, checksums } = report;
  const whole = decode ? ' and can be decoded whole' : '';
  let outcome = checksums ? `all as it was packed${whole}` : `headers in order${whole}`;
  if (faults > 0) {
    const others = faults - damagedSamples;
    const also = others > 0 ? ` and ${countOf(others, 'fault')} of whole shards` : '';
    outcome = `${countOf(damagedSamples, 'damaged sample')}${also}`;
  }
  const odd = warnings > 0 ? `; ${countOf(warnings, 'image')} decoded with warnings` : '';
  const unknown = checksums ? '' : '; without an index there are no checksums to compare ("shardtool index" makes one)';
  const size = `${countOf(shards, 'shard')}, ${countOf(samples, 'sample')}, ${formatSize(bytes)}`;
  return `${size}: ${outcome}${odd}${unknown}`;
}
