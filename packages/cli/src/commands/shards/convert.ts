import { escapeControls } from '@shardtool/base/text';
import type { OpenOptions } from '@shardtool/reader';
import type { ConvertOptions, ConvertReport } from '@shardtool/writer';
import { CONVERT_OPTIONS, OUTPUT_OPTIONS } from '@shardtool/writer/option-table';
import { command } from '../../command.js';
import { OUTPUT_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, viewOf } from '../../options/dataset-flags.js';
import { flagsOf } from '../../options/option-flags.js';
import { OUTPUT_FLAGS } from '../../options/output-flags.js';
import { stoppable } from '../../terminal/interrupt.js';
import { print } from '../../terminal/outcome.js';
import { ProgressView } from '../../terminal/progress-view.js';
import { countLine, entriesLine, fieldsLine, metaLine } from '../../terminal/report-lines.js';
import { countOf, formatSize } from '../../terminal/size.js';
import { timeLine } from '../../terminal/time-line.js';
import { WriteRate } from '../../terminal/write-rate.js';

/** Stands for a tar on standard input. */
const STANDARD_INPUT = '-';

export const convertCommand = command({
  name: 'convert',
  summary: 'Convert shards to another format, without re-encoding images',
  details:
    'Reads every format that shardtool can open, and tars from a stream. Shards keep their names and samples, unless --max-shard-bytes, --max-shard-samples, --seed or --sort-by is given. An interrupted run resumes if you repeat the command; with these options it starts again.',
  arguments: {
    input: {
      type: 'string',
      demandOption: true,
      describe: 'Folder of shards, one shard, a .tar.gz or .tar.zst, a URL, or - for a tar on standard input',
    },
    output: OUTPUT_ARGUMENT,
  },
  options: { ...DATASET_FLAGS, ...OUTPUT_FLAGS, ...flagsOf(CONVERT_OPTIONS) },
  examples: [
    ['$0 convert shards lmdb --format lmdb', 'Shards with the same names, samples in the same order'],
    ['$0 convert shards streaming --format mds', 'For StreamingDataset of MosaicML'],
    ['$0 convert imagenet.tar.gz shards --max-shard-bytes 256MiB', 'Divide a large archive into shards'],
    ['$0 convert shards large --max-shard-bytes 1GiB', 'Shards of another size'],
    ['$0 convert shards shuffled --seed 1', 'All samples in random order, for readers that only shuffle a little'],
    ['curl -s URL | $0 convert - shards', 'The same from standard input'],
    ['$0 convert photos.tar.gz shards', 'cat/1.jpg in the archive gets the class cat, as with pack'],
    ['$0 convert shards tars --index wids,dali', 'With the indexes that other loaders need'],
  ],
  handler: async (given) => {
    const { convert } = await import('@shardtool/writer');
    const { input, output, json, quiet } = given;
    const bar = json || quiet ? null : await ProgressView.open();
    const view = await viewOf(given);
    const rate = new WriteRate();
    const startedAt = performance.now();
    const remedy =
      input === STANDARD_INPUT
        ? ` ${output} is not complete: convert again with --overwrite.`
        : ` ${output} is not complete: repeat the command to resume.`;
    let report: ConvertReport;
    try {
      report = await stoppable(remedy, (signal) =>
        convert(input === STANDARD_INPUT ? process.stdin : input, output, {
          ...optionsOf(given),
          ...view,
          signal,
          onProgress: (progress) => bar?.show(rate.describe(progress)),
        }),
      );
    } finally {
      bar?.hide();
    }
    if (json) await print(JSON.stringify(report));
    else if (!quiet) await print(describe(report, output, (performance.now() - startedAt) / 1000));
  },
});

/** The options by name, without what yargs adds. */
function optionsOf(given: Omit<ConvertOptions, keyof OpenOptions>): ConvertOptions {
  return Object.fromEntries(
    Object.entries(given).filter(([name]) => name in OUTPUT_OPTIONS || name in CONVERT_OPTIONS),
  );
}

function describe(report: ConvertReport, output: string, seconds: number): string {
  const { samples, shards, bytes, skippedEntries, skippedLinks, leftOut, partialFields, keptShards, wasCommitted } =
    report;
  if (wasCommitted) return `${output} already has all samples.`;
  return [
    `Converted ${countOf(samples, 'sample')} into ${countOf(shards, 'shard')} in ${escapeControls(output)} (${formatSize(bytes)}).`,
    ...entriesLine(skippedEntries),
    ...countLine(
      skippedLinks,
      'link was skipped: --links follow uses the file in the same tar that it points to',
      'links were skipped: --links follow uses the files in the same tar that they point to',
    ),
    ...countLine(
      leftOut,
      'sample was skipped, because the labels have no row for it or --where excludes it',
      'samples were skipped, because the labels have no row for them or --where excludes them',
    ),
    ...metaLine(report.metaSamples),
    ...countLine(
      report.wordClasses,
      'sample has no class, because its field cls is not a number: --class-column cls makes its text the class',
      'samples have no class, because the field cls is not a number: --class-column cls makes its text the class',
    ),
    ...countLine(
      report.unnamedClasses,
      'sample has a class number, but classes have no names: --classes FILE gives them names',
      'samples have a class number, but classes have no names: --classes FILE gives them names',
    ),
    ...fieldsLine(partialFields, samples),
    ...countLine(keptShards, 'shard was already finished', 'shards were already finished'),
    timeLine({ samples, bytes, seconds, isResumed: keptShards > 0, next: `shardtool bench ${output}` }),
  ].join('\n');
}
