import { visible } from '@shardtool/format/visible';
import type { DatasetStats, DistributionSummary } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { wholeNumber } from '../../options/flags.js';
import { barLines } from '../../terminal/bars.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';

export const statsCommand = command({
  name: 'stats',
  positionals: '<dataset>',
  describe: 'Sum up what is in a dataset: classes, sizes, kinds, repeated keys',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards, or one tar' })
      .options(DATASET_FLAGS)
      .option('classes', wholeNumber('--classes', 'How many classes to list, the largest first', { default: 20 }))
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object, with every class' })
      .example('$0 stats shards', 'Tables and small histograms')
      .example("$0 stats shards --json | jq '.classes | min_by(.samples)'", 'The smallest class'),
  handler: async ({ dataset: location, classes, json, ...seen }) => {
    const { datasetStats } = await import('@shardtool/reader');
    const dataset = await openGiven(location, seen);
    const stats = await datasetStats(dataset);
    await dataset.close();
    await print(json ? JSON.stringify(stats) : describe(stats, classes).join('\n'));
  },
});

function describe(stats: DatasetStats, classes: number): string[] {
  const { format, shards, samples, bytes, shardSamples, shardBytes, turned, repeatedKeys } = stats;
  return [
    `${countOf(samples, 'sample')} in ${countOf(shards, `${format} shard`)}, ${formatSize(bytes)}; a shard has ` +
      `${range(shardSamples, formatCount)} samples, ${range(shardBytes, formatSize)}`,
    ...classLines(stats, classes),
    ...section('kinds of images'),
    ...bars(
      stats.kinds.map(({ kind, samples: count, bytes: size }) => {
        return { label: visible(kind), value: count, text: `${formatCount(count)}, ${formatSize(size)}` };
      }),
    ),
    ...stats.fields.flatMap(({ name, bytes: sizes }) => [
      ...section(`field ${visible(name)}: in ${countOf(sizes.count, 'sample')}, ${summary(sizes, formatSize)}`),
      ...histogram(sizes, formatSize),
    ]),
    ...(['width', 'height', 'pixels'] as const).flatMap((name) => [
      ...section(`${name}: ${summary(stats[name], formatCount)}`),
      ...histogram(stats[name], formatCount),
    ]),
    '',
    stats.width.count === 0
      ? 'whether images are to be turned is not known'
      : turned === 0
        ? 'no image is to be turned'
        : `${countOf(turned, 'image')} to be turned (EXIF orientation)`,
    repeatedKeys.count === 0
      ? 'no key comes twice'
      : `${countOf(repeatedKeys.count, 'sample')} with a key that came before: ${repeatedKeys.examples.map((key) => visible(key)).join(', ')}`,
  ];
}

function classLines({ classes, samplesWithoutClass }: DatasetStats, most: number): string[] {
  const none = samplesWithoutClass === 0 ? '' : `, ${countOf(samplesWithoutClass, 'sample')} without a class`;
  if (classes.length === 0) return section(`no classes${none}`);
  const sorted = classes.toSorted((a, b) => b.samples - a.samples);
  const smallest = sorted.at(-1)!;
  const title = `${countOf(classes.length, 'class', 'classes')}, the smallest ${visible(smallest.name)} with ${formatCount(smallest.samples)}${none}`;
  const rows = sorted.slice(0, most).map(({ name, samples, bytes }) => {
    return { label: visible(name), value: samples, text: `${formatCount(samples)}, ${formatSize(bytes)}` };
  });
  const more = classes.length > most ? [`  and ${formatCount(classes.length - most)} more: --classes N, --json`] : [];
  return [...section(title), ...bars(rows), ...more];
}

function section(title: string): string[] {
  return ['', title];
}

function bars(rows: Parameters<typeof barLines>[0]): string[] {
  return rows.length === 0 ? ['  none'] : barLines(rows);
}

/** Nothing where all have the same number. */
function histogram(
  { smallest, largest, histogram: bins }: DistributionSummary,
  format: (value: number) => string,
): string[] {
  if (smallest === largest) return [];
  return barLines(
    bins.map(({ from, to, count }) => ({
      label: to - from === 1 ? format(from) : `${format(from)} to ${format(to)}`,
      value: count,
      text: formatCount(count),
    })),
  );
}

function summary(sizes: DistributionSummary, format: (value: number) => string): string {
  if (sizes.count === 0) return 'not known';
  const { mean, median } = sizes;
  return sizes.smallest === sizes.largest
    ? `${format(mean)} each`
    : `${range(sizes, format)}, mean ${format(Math.round(mean))}, median ${format(median)}`;
}

function range({ smallest, largest }: DistributionSummary, format: (value: number) => string): string {
  return smallest === largest ? format(smallest) : `${format(smallest)} to ${format(largest)}`;
}
