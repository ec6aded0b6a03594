import { verify } from '@shardtool/writer';
import type { CommandModule } from 'yargs';
import { foundFault, write } from '../outcome.js';
import { formatCount, formatSize } from '../size.js';

interface VerifyArguments {
  readonly dataset: string;
  readonly decode: boolean;
  readonly workers: number | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
}

export const verifyCommand: CommandModule<object, VerifyArguments> = {
  command: 'verify <dataset>',
  describe: 'Check headers, checksums and counts; exit 1 and a line for each damaged sample',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .option('decode', { type: 'boolean', default: false, describe: 'Also decode every image whole' })
      .option('workers', { type: 'number', describe: 'Threads; by default one a core' })
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object a line: faults, then totals' })
      .option('quiet', { type: 'boolean', default: false, describe: 'Print nothing when all is well' })
      .example('$0 verify shards', 'Every byte against its checksum')
      .example('$0 verify shards --decode', 'And every image decoded whole'),
  handler: async ({ dataset, decode, workers, json, quiet }) => {
    const report = await verify(dataset, {
      decode,
      ...(workers !== undefined && { workers }),
      onFault: (fault) => {
        const { shard, key, reason } = fault;
        void write(json ? `${JSON.stringify(fault)}\n` : `${shard}${key === undefined ? '' : `  ${key}`}  ${reason}\n`);
      },
    });
    if (report.faults > 0) foundFault();
    if (json) await write(`${JSON.stringify(report)}\n`);
    else if (report.faults > 0 || !quiet) {
      const outcome =
        report.faults === 0
          ? 'all as it was packed'
          : `${formatCount(report.faults)} faults in ${formatCount(report.damagedSamples)} samples`;
      const warnings = report.warnings > 0 ? `, ${formatCount(report.warnings)} images decoded with warnings` : '';
      await write(
        `${formatCount(report.shards)} shards, ${formatCount(report.samples)} samples, ${formatSize(report.bytes)}: ${outcome}${warnings}\n`,
      );
    }
  },
};
