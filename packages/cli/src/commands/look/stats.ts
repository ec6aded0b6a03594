import { escapeControls } from '@shardtool/base/text';
import type { DatasetStats, DistributionSummary, ObjectStats } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { wholeNumber } from '../../options/flags.js';
import { ANNOTATIONS_FLAG, readAnnotationsFlag } from '../../options/transform-flag.js';
import { barLines } from '../../terminal/bars.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';

export const statsCommand = command({
  name: 'stats',
  summary: 'Summarize a dataset: classes, image sizes, formats, duplicate keys',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    ...DATASET_FLAGS,
    limit: {
      ...wholeNumber('--limit', 'Maximum number of classes to list, the largest first', { default: 20 }),
      group: 'Output',
      isCommon: true,
    },
    annotations: {
      ...ANNOTATIONS_FLAG,
      describe: 'JSON file that describes the annotation fields; boxes and labels are counted too (docs/detection.md)',
    },
  },
  examples: [
    ['$0 stats shards', 'Tables and small histograms'],
    ['$0 stats shards --annotations a.json', 'Also boxes per class, their sizes, and images without boxes'],
    ["$0 stats shards --json | jq '.classes | min_by(.samples)'", 'The smallest class'],
  ],
  handler: async ({ dataset: location, limit, annotations, json, ...seen }) => {
    const { countAnnotations, getStats } = await import('@shardtool/reader');
    const places = await readAnnotationsFlag(annotations);
    await using dataset = await openGiven(location, seen);
    const stats = await getStats(dataset);
    const objects = places === undefined ? null : await countAnnotations(dataset, places);
    const lines = [...describe(stats, limit, location), ...(objects === null ? [] : objectLines(objects, limit))];
    await print(json ? JSON.stringify({ ...stats, ...(objects && { objects }) }) : lines.join('\n'));
  },
});

function describe(stats: DatasetStats, classes: number, location: string): string[] {
  const { format, shards, samples, bytes, shardSamples, shardBytes, turned, repeatedKeys } = stats;
  return [
    `${countOf(samples, 'sample')} in ${countOf(shards, `${format} shard`)}, ${formatSize(bytes)}; a shard has ` +
      `${range(shardSamples, formatCount)} samples, ${range(shardBytes, formatSize)}`,
    ...classLines(stats, classes),
    ...section('kinds of images'),
    ...bars(
      stats.kinds.map(({ kind, samples: count, bytes: size }) => {
        return { label: escapeControls(kind), value: count, text: `${formatCount(count)}, ${formatSize(size)}` };
      }),
    ),
    ...stats.fields.flatMap(({ name, bytes: sizes }) => [
      ...section(`field ${escapeControls(name)}: in ${countOf(sizes.count, 'sample')}, ${summary(sizes, formatSize)}`),
      ...histogram(sizes, formatSize),
    ]),
    ...(stats.width.count === 0
      ? section(unknownSizes(stats, location))
      : [
          ...(['width', 'height', 'pixels'] as const).flatMap((name) => [
            ...section(`${name}: ${summary(stats[name], formatCount)}`),
            ...histogram(stats[name], formatCount),
          ]),
          '',
          `${turned === 0 ? 'no image' : countOf(turned, 'image')} with an EXIF orientation that rotates or flips`,
        ]),
    repeatedKeys.count === 0
      ? 'no duplicate keys'
      : `${countOf(repeatedKeys.count, 'sample')} with the key of an earlier sample: ${repeatedKeys.examples.map((key) => escapeControls(key)).join(', ')}`,
  ];
}

/** Explains why sizes are unknown: shards of other software do not record them, only the image headers do. */
function unknownSizes({ format, kinds }: DatasetStats, location: string): string {
  if (kinds.length === 0) return 'no field is an image file, so there are no widths and heights';
  const command = format === 'folder' ? 'pack' : 'index';
  return `width, height and orientation are unknown until "shardtool ${command} ${escapeControls(location)}" reads the image headers`;
}

function objectLines({ objects, images, without, classes, perImage, width, height, bad }: ObjectStats, most: number) {
  const sorted = classes.toSorted((a, b) => b.objects - a.objects);
  const rows = sorted.slice(0, most).map(({ name, objects: count, images: on }) => {
    return { label: escapeControls(name), value: count, text: `${formatCount(count)} on ${countOf(on, 'image')}` };
  });
  const more = classes.length > most ? [`  and ${formatCount(classes.length - most)} more: --limit N, --json`] : [];
  const unusable =
    bad.first === null
      ? []
      : [
          `${countOf(bad.count, 'sample')} with annotations that cannot be used; the first: "${escapeControls(bad.first.key)}", ${escapeControls(bad.first.reason)}`,
        ];
  return [
    ...section(
      `${countOf(objects, 'object')} on ${countOf(images, 'image')}, ${countOf(without, 'image')} without any`,
    ),
    ...(classes.length === 0 ? [] : [...bars(rows), ...more]),
    ...section(`objects per image: ${summary(perImage, formatCount)}`),
    ...histogram(perImage, formatCount),
    ...section(`width of boxes: ${summary(width, formatCount)}`),
    ...histogram(width, formatCount),
    ...section(`height of boxes: ${summary(height, formatCount)}`),
    ...histogram(height, formatCount),
    ...unusable,
  ];
}

function classLines({ classes, samplesWithoutClass }: DatasetStats, most: number): string[] {
  const none = samplesWithoutClass === 0 ? '' : `, ${countOf(samplesWithoutClass, 'sample')} without a class`;
  if (classes.length === 0) return section(`no classes${none}`);
  const sorted = classes.toSorted((a, b) => b.samples - a.samples);
  const smallest = sorted.at(-1)!;
  if (sorted[0]!.samples === 0 && samplesWithoutClass > 0) {
    // Such as the categories of COCO, which are classes of objects.
    return section(
      `${countOf(classes.length, 'class', 'classes')}, but no sample has one; if they are classes of objects, --annotations FILE counts the objects`,
    );
  }
  const title = `${countOf(classes.length, 'class', 'classes')}, the smallest ${escapeControls(smallest.name)} with ${formatCount(smallest.samples)}${none}`;
  const rows = sorted.slice(0, most).map(({ name, samples, bytes }) => {
    return { label: escapeControls(name), value: samples, text: `${formatCount(samples)}, ${formatSize(bytes)}` };
  });
  const more = classes.length > most ? [`  and ${formatCount(classes.length - most)} more: --limit N, --json`] : [];
  return [...section(title), ...bars(rows), ...more];
}

function section(title: string): string[] {
  return ['', title];
}

function bars(rows: Parameters<typeof barLines>[0]): string[] {
  return rows.length === 0 ? ['  none'] : barLines(rows);
}

/** No line if all have the same number. */
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
  const { mean, median } = sizes;
  return sizes.smallest === sizes.largest
    ? `${format(mean)} each`
    : `${range(sizes, format)}, mean ${format(Math.round(mean))}, median ${format(median)}`;
}

function range({ smallest, largest }: DistributionSummary, format: (value: number) => string): string {
  return smallest === largest ? format(smallest) : `${format(smallest)} to ${format(largest)}`;
}
