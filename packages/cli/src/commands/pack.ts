import { PACK_DEFAULTS, type PackOptions, pack } from '@shardtool/writer';
import type { ArgumentsCamelCase, Argv, CommandModule } from 'yargs';
import { ProgressView } from '../progress-view.js';
import { formatCount, formatSize, parseSize } from '../size.js';

const builder = (yargs: Argv) =>
  yargs
    .positional('source', { type: 'string', demandOption: true, describe: 'Folder with a folder for each class' })
    .positional('output', { type: 'string', demandOption: true, describe: 'Folder for the shards' })
    .option('format', { choices: ['tar', 'lmdb', 'msgpack'] as const, default: PACK_DEFAULTS.format, describe: 'Kind of shards' })
    .option('max-shard-bytes', { type: 'string', describe: 'Largest shard, as 256MB or 64MiB (default 256MiB)' })
    .option('max-shard-samples', { type: 'number', describe: 'Most samples in a shard' })
    .option('name', { type: 'string', default: PACK_DEFAULTS.name, describe: 'In front of the numbers: train gives train-000000.tar' })
    .option('seed', { type: 'number', default: PACK_DEFAULTS.seed, describe: 'Of the order in which samples are packed' })
    .option('shuffle', { type: 'boolean', default: PACK_DEFAULTS.shuffle, describe: '--no-shuffle keeps the order of the paths' })
    .option('classes', { type: 'string', describe: 'Text file with the classes in the order of their numbers' })
    .option('labels', { type: 'string', describe: 'CSV or JSON Lines: path, class, further columns for the index' })
    .option('files', { type: 'string', describe: 'Text file with the paths to pack, instead of the whole folder' })
    .option('fields', { type: 'string', array: true, describe: 'Endings that belong to the image with the same stem: seg.png' })
    .option('include', { type: 'string', array: true, describe: 'Glob patterns below the source to pack' })
    .option('exclude', { type: 'string', array: true, describe: 'Glob patterns below the source to leave out' })
    .option('resize', { type: 'number', describe: 'Shrink images until the shorter side has so many pixels' })
    .option('quality', { type: 'number', describe: 'Of re-encoded JPEG and WebP, 1 to 100' })
    .option('image-format', { choices: ['jpg', 'webp', 'png'] as const, describe: 'Re-encode every image' })
    .option('on-bad', {
      choices: ['stop', 'quarantine'] as const,
      default: PACK_DEFAULTS.onBad,
      describe: 'What becomes of files that cannot be packed: quarantine.jsonl lists them',
    })
    .option('max-bad', { type: 'number', default: PACK_DEFAULTS.maxBad, describe: 'Share of bad images at which the pack gives up' })
    .option('workers', { type: 'number', describe: 'Threads; by default one a core' })
    .option('overwrite', { type: 'boolean', default: PACK_DEFAULTS.overwrite, describe: 'Replace what an earlier pack made' })
    .option('dry-run', { type: 'boolean', default: PACK_DEFAULTS.dryRun, describe: 'Only say what would be made' })
    .option('json', { type: 'boolean', default: false, describe: 'The report as one JSON object' })
    .option('quiet', { type: 'boolean', default: false, describe: 'Print nothing when all is well' })
    .example('$0 pack photos shards', 'photos/cat/1.jpg becomes sample cat/1 of class cat')
    .example('$0 pack photos shards --resize 256 --quality 90', 'Smaller images')
    .example('$0 pack photos shards --labels labels.csv', 'Classes and columns from a table')
    .example('$0 pack photos shards --on-bad quarantine', 'Go on past damaged images');

type PackArguments = ReturnType<typeof builder> extends Argv<infer Given> ? Given : never;

export const packCommand: CommandModule<object, PackArguments> = {
  command: 'pack <source> <output>',
  describe: 'Pack a folder of images into shards',
  builder,
  handler: async (given) => {
    const { source, output, json, quiet } = given;
    const interrupt = new AbortController();
    const stop = (signal: NodeJS.Signals) => interrupt.abort(new Interrupted(signal));
    process.once('SIGINT', stop).once('SIGTERM', stop);
    const view = json || quiet ? null : new ProgressView();
    try {
      const report = await pack(source, output, {
        ...optionsOf(given),
        signal: interrupt.signal,
        ...(view !== null && { onProgress: (progress) => view.show(progress) }),
      });
      view?.end();
      if (json) console.log(JSON.stringify(report));
      else if (!quiet) console.log(describe(report, output, given.dryRun ?? false));
    } catch (error) {
      view?.end();
      if (!(error instanceof Interrupted)) throw error;
      console.error(`shardtool: ${error.message}`);
      process.exitCode = error.signal === 'SIGINT' ? 130 : 143;
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop);
    }
  },
};

class Interrupted extends Error {
  constructor(readonly signal: NodeJS.Signals) {
    super(`the pack was stopped by ${signal} and is not complete; run it again with --overwrite.`);
  }
}

/** The options by name, without what yargs adds. */
function optionsOf(given: ArgumentsCamelCase<PackArguments>): PackOptions {
  const { format, maxShardSamples, name, seed, shuffle, classes, labels, files, fields, include, exclude } = given;
  const { resize, quality, imageFormat, onBad, maxBad, workers, overwrite, dryRun, maxShardBytes } = given;
  return {
    format,
    maxShardBytes: maxShardBytes === undefined ? undefined : parseSize(maxShardBytes),
    ...{ maxShardSamples, name, seed, shuffle, classes, labels, files, fields, include, exclude },
    ...{ resize, quality, imageFormat, onBad, maxBad, workers, overwrite, dryRun },
  };
}

function describe(report: Awaited<ReturnType<typeof pack>>, output: string, dryRun: boolean): string {
  const lines = [
    `${dryRun ? 'Would pack' : 'Packed'} ${formatCount(report.files)} files (${formatSize(report.sourceBytes)}), ` +
      `${formatCount(report.samples)} samples of ${formatCount(report.classes.length)} classes, into ` +
      `${formatCount(report.shards)} shards in ${output}${dryRun ? '' : ` (${formatSize(report.bytes)})`}.`,
  ];
  const count = (value: number, what: string) => {
    if (value > 0) lines.push(`  ${formatCount(value)} ${what}`);
  };
  count(report.renamed, 'images are of another kind than their name says; their field is named by the content');
  count(report.orientationBaked, 'images were turned as their EXIF orientation says');
  count(report.skippedFiles, 'files were skipped, since they belong to no image');
  count(report.skippedFolders.length, `folders were skipped, since another path leads to them too: ${report.skippedFolders[0]}`);
  count(report.quarantined, 'images are bad and were left out; quarantine.jsonl lists them');
  return lines.join('\n');
}
