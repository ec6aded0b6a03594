import { totalOf } from '@shardtool/base';
import { escapeControls } from '@shardtool/base/text';
import type { CropIndexCounts, PackReport, PartialField } from '@shardtool/writer';
import { kebab } from '../kebab.js';
import { countOf, formatCount } from './size.js';

/** One line of a report, a count and its text. No line for a count of 0. */
export function countLine(count: number, one: string, more: string): string[] {
  return count === 0 ? [] : [`  ${formatCount(count)} ${count === 1 ? one : more}`];
}

/** Number of files in shards that belong to no sample. No line if there are none. */
export function entriesLine(skippedEntries: number): string[] {
  return countLine(
    skippedEntries,
    'file belongs to no sample and was skipped',
    'files belong to no sample and were skipped',
  );
}

/** Number of skipped files, by extension or reason. No line if none was skipped. `listed` makes the text that names their list. */
export function skippedLine(
  { skippedFiles, skipped }: Pick<PackReport, 'skippedFiles' | 'skipped'>,
  listed: (list: string) => string,
): string[] {
  if (skippedFiles === 0) return [];
  const counts = Object.entries(skipped).map(([name, count]) => `${formatCount(count)} ${escapeControls(name)}`);
  return [
    `  ${countOf(skippedFiles, 'file')} skipped: ${counts.join(', ')} (${listed('skipped.jsonl')} ${skippedFiles === 1 ? 'it' : 'them'})`,
  ];
}

/** The share in percent: two digits if it is below 1 %, and never rounded up to 100 %. */
function shareText(part: number, whole: number): string {
  const percent = (100 * part) / whole;
  return `${percent < 1 ? Number(percent.toPrecision(2)) : Math.floor(percent * 10) / 10} %`;
}

/** Warns if the labels at `place` name only some of the images. A mistyped path can be the reason. */
export function labelsWarning(
  {
    samples,
    duplicates,
    quarantined,
    unlabelled,
  }: Pick<PackReport, 'samples' | 'duplicates' | 'quarantined' | 'unlabelled'>,
  place: string,
): string[] {
  if (unlabelled === 0) return [];
  const named = samples + duplicates + quarantined;
  const all = named + unlabelled;
  return [
    `Warning: ${escapeControls(place)} has rows for ${formatCount(named)} of ${countOf(all, 'image')} (${shareText(named, all)}), and only those are packed. ` +
      'With --require-labels, this is an error.',
  ];
}

/** Folders that look like classes but contain no packed image. */
export function folderLines({ emptyFolders }: Pick<PackReport, 'emptyFolders'>): string[] {
  const first = escapeControls(emptyFolders[0] ?? '');
  const numbers =
    'ImageFolder numbers such folders too, so its later class numbers differ; to use the same, set --classes FILE';
  return countLine(
    emptyFolders.length,
    `folder contains no packed image, so it is not a class: ${first} (${numbers})`,
    `folders contain no packed image, so they are not classes; the first: ${first} (${numbers})`,
  );
}

/** Samples that webdataset skips. */
export function metaLine(samples: number): string[] {
  const because = 'begins with a folder like __x__; to read these tars with webdataset, rename that folder';
  return countLine(
    samples,
    `sample is skipped by webdataset, because its key ${because}`,
    `samples are skipped by webdataset, because each key ${because}`,
  );
}

/**
 * What changed in the source since the first pack of a dataset that grows by --append. `overlay` is the command that applies
 * changed labels; null if there is no such command.
 */
export function changesLine(
  { changes, unlistedMissing = 0 }: Pick<PackReport, 'changes' | 'unlistedMissing'>,
  overlay: string | null,
  isPlan: boolean,
): string[] {
  const unlisted =
    unlistedMissing === 0
      ? []
      : [
          `  ${formatCount(unlistedMissing)} packed files are missing from the source, which seems to have only new files: their samples stay, and changed.jsonl does not list them`,
        ];
  if (changes === undefined) return unlisted;
  const { changed, gone, relabelled = 0, first, isApplied = false } = changes;
  const parts = [
    ...(changed > 0 ? [`${countOf(changed, 'file has', 'files have')} changed`] : []),
    ...(gone > 0 ? [`${countOf(gone, 'file is', 'files are')} missing`] : []),
    ...(relabelled > 0
      ? [`${countOf(relabelled, 'packed image has', 'packed images have')} different labels now`]
      : []),
  ];
  const applied = isPlan ? 'their samples would be replaced or removed' : 'their samples were replaced or removed';
  const outcome = isApplied ? applied : 'their samples stay as they were packed';
  const listed = isPlan ? '' : 'changed.jsonl lists them; ';
  return [
    ...unlisted,
    `  ${parts.join(', and ')}: ${outcome} (${listed}the first: ${escapeControls(first)})`,
    ...(relabelled > 0 && overlay !== null && !isApplied && !isPlan
      ? [`  To apply the new labels to packed images: ${overlay}`]
      : []),
  ];
}

/** Options of the first pack that --append kept because they were not given, as they are typed. */
export function keptLine({ keptOptions = {} }: Pick<PackReport, 'keptOptions'>): string[] {
  const flags = Object.entries(keptOptions).map(([name, value]) => {
    const flag = `--${kebab(name)}`;
    if (value === true) return flag;
    if (value === false) return flag.replace('--', '--no-');
    return `${flag} ${escapeControls(Array.isArray(value) ? value.join(',') : String(value))}`;
  });
  return flags.length === 0 ? [] : [`  with the options of the first pack: ${flags.join(' ')}`];
}

/** Number of annotations that are in no sample, by reason. No line if there are none. */
export function annotationsLine(
  { skippedAnnotations }: Pick<PackReport, 'skippedAnnotations'>,
  listed: (list: string) => string,
): string[] {
  const counts = Object.entries(skippedAnnotations);
  const all = totalOf(counts, ([, count]) => count);
  if (all === 0) return [];
  const reasons = counts.map(([reason, count]) => `${formatCount(count)} ${reason}`).join(', ');
  return [
    `  ${countOf(all, 'annotation')} skipped: ${reasons} (${listed('skipped.jsonl')} ${all === 1 ? 'it' : 'them'})`,
  ];
}

/** Number of images with a crop index, and of images that cannot have one, by reason. No line if no crop index was made. */
export function cropLines(crops: CropIndexCounts | null): string[] {
  if (crops === null) return [];
  return [
    ...countLine(crops.indexed, 'image has a crop index', 'images have a crop index'),
    ...Object.entries(crops.refused).flatMap(([why, count]) =>
      countLine(count, `image has none: ${why}`, `images have none: ${why}`),
    ),
  ];
}

/** Number of samples without a class, if other samples have one. */
export function classlessLine(fields: readonly PartialField[], samples: number): string[] {
  const withClass = fields.find((field) => field.name === 'cls')?.samples ?? samples;
  return countLine(
    samples - withClass,
    'sample has no class: its label is -1 in training',
    'samples have no class: their label is -1 in training',
  );
}

/** Warns that samples differ in their fields, and names the loaders that reject this. */
export function fieldsLine(fields: readonly PartialField[], samples: number): string[] {
  if (fields.length === 0) return [];
  const counts = fields.map((field) => `${escapeControls(field.name)} in ${formatCount(field.samples)}`);
  return [
    `  the samples differ in their fields (of ${formatCount(samples)}: ${counts.join(', ')}): shardtool reads them, but ` +
      "webdataset's to_tuple and batched, wids with PyTorch's collate and DALI want the same fields in every sample",
  ];
}
