import { indexShards } from '@shardtool/writer';
import type { CommandModule } from 'yargs';
import { formatCount } from '../size.js';

interface IndexArguments {
  readonly tars: readonly string[];
  readonly overwrite: boolean;
  readonly quiet: boolean;
}

export const indexCommand: CommandModule<object, IndexArguments> = {
  command: 'index <tars..>',
  describe: 'Index WebDataset tars of other software, so that they open at once',
  builder: (yargs) =>
    yargs
      .positional('tars', { type: 'string', array: true, demandOption: true, describe: 'Tar files, or one folder of them' })
      .option('overwrite', { type: 'boolean', default: false, describe: 'Replace indexes that are there' })
      .option('quiet', { type: 'boolean', default: false, describe: 'Print nothing when all is well' })
      .example('$0 index imagenet-train-*.tar', 'NAME.parquet beside each tar')
      .example('$0 index imagenet/', 'All tars of a folder, and dataset.json: the folder is then a dataset'),
  handler: async ({ tars, overwrite, quiet }) => {
    const report = await indexShards(tars, { overwrite });
    if (quiet) return;
    const dataset = report.dataset === null ? '' : ` and wrote ${report.dataset}`;
    console.log(`Indexed ${formatCount(report.samples)} samples in ${formatCount(report.shards)} shards${dataset}.`);
    if (report.skippedEntries > 0) console.log(`  ${formatCount(report.skippedEntries)} entries were skipped: dotfiles, or names without a dot`);
  },
};
