import { CALL_OPTIONS, checkCallOptions, type OptionTable, SampleDecodeError, watchedCall } from '@shardtool/base';
import { type LoadedIndex, nameTable } from '@shardtool/format';
import { checkDataset } from '../dataset/check-dataset.js';
import { fieldBytes } from '../dataset/fields/field-bytes.js';
import { checkFieldsAndColumns } from '../dataset/fields/field-names.js';
import { Distribution, type DistributionSummary } from '../dataset/figures/distribution.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { GivenAnnotations } from '../transform/annotations.js';
import { columnsText } from './columns-text.js';
import { type AnnotationOptions, type CheckedAnnotations, checkAnnotations } from './options.js';
import { readAnnotations } from './read.js';
import { annotationSources, nameOfSource } from './sources.js';

/** Statistics of the annotations of a dataset. */
export interface ObjectStats {
  readonly objects: number;
  /** Number of images with at least one object. */
  readonly images: number;
  /** Number of images without objects. */
  readonly without: number;
  /** Counts per class, in the order of class numbers. Empty if there are no labels. */
  readonly classes: readonly { readonly name: string; readonly objects: number; readonly images: number }[];
  readonly perImage: DistributionSummary;
  /** Width of boxes in pixels of the stored image, rounded. Normalized boxes count only if the index has the size of the image. */
  readonly width: DistributionSummary;
  /** Height of boxes, measured like `width`. */
  readonly height: DistributionSummary;
  /** Number of images whose annotations are invalid, and the first of them. */
  readonly bad: { readonly count: number; readonly first: { readonly key: string; readonly reason: string } | null };
}

/** Number of samples whose fields are read at a time. */
const SAMPLES_AT_ONCE = 64;

/** How {@link countAnnotations} runs. */
export interface CountOptions {
  /** Called repeatedly while the call runs. */
  readonly onProgress?: ((progress: SampleProgress) => void) | undefined;
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Progress of a call that reads samples. */
export interface SampleProgress {
  readonly samples: number;
  readonly totalSamples: number;
}

const OPTIONS = {
  onProgress: CALL_OPTIONS.onProgress,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/**
 * Counts the objects of all images. `source` names the fields or columns that have them, like the loader's option
 * `annotations`. Reads only the fields with annotations. Throws {@link OptionError}, and the errors of reading shards
 * and indexes.
 */
export async function countAnnotations(
  dataset: StoredDataset,
  source: AnnotationOptions,
  options: CountOptions = {},
): Promise<ObjectStats> {
  checkDataset('countAnnotations', dataset);
  const annotations = checkAnnotations(source);
  checkCallOptions('countAnnotations', OPTIONS, options);
  // More objects than a loader would allow are counted, too.
  const all = { ...annotations, maxBoxes: 100_000, maxPoints: 10_000_000 };
  return watchedCall<SampleProgress, ObjectStats>(options, (report) => count(dataset, all, report));
}

async function count(
  dataset: StoredDataset,
  annotations: CheckedAnnotations,
  report: (progress: SampleProgress) => void,
): Promise<ObjectStats> {
  const names = annotationSources(annotations).flatMap(({ field, columns }) => columns ?? [field!]);
  await checkFieldsAndColumns('annotations', names, dataset);
  const tally = new Tally();
  let samples = 0;
  for (const shard of dataset.shards.keys()) {
    const index = await dataset.files.index(shard);
    for (let from = 0; from < index.samples; from += SAMPLES_AT_ONCE) {
      const rows = Array.from({ length: Math.min(SAMPLES_AT_ONCE, index.samples - from) }, (_, i) => from + i);
      const read = await Promise.all(rows.map((row) => objectsOf(dataset, annotations, { shard, index, row })));
      read.forEach((found, i) => {
        if (typeof found === 'string') tally.addBad(index.key[rows[i]!]!, found);
        else tally.add(found, shownSize(index, rows[i]!));
      });
      samples += rows.length;
      report({ samples, totalSamples: dataset.size });
    }
  }
  return tally.summary(dataset.classes);
}

interface SamplePosition {
  readonly shard: number;
  readonly index: LoadedIndex;
  readonly row: number;
}

/** The annotations of a sample, or the reason why they are invalid. */
async function objectsOf(
  dataset: StoredDataset,
  annotations: CheckedAnnotations,
  { shard, index, row }: SamplePosition,
): Promise<GivenAnnotations | string> {
  const values = nameTable<Uint8Array>();
  try {
    for (const source of annotationSources(annotations)) {
      const name = nameOfSource(source);
      if (name in values) continue;
      const column = source.field === undefined ? undefined : index.fields.get(source.field);
      if (column === undefined && (source.field === undefined || index.columns.has(source.field))) {
        values[name] = Buffer.from(columnsText(index.columns, source.columns ?? source.field!, row));
        continue;
      }
      const offset = column?.offset[row] ?? -1;
      if (column === undefined || offset < 0) return `it has no field "${name}"`;
      const stored = new Uint8Array(column.bytes[row]!);
      await dataset.files.read(shard, offset, stored);
      const where = { shard: dataset.shards[shard]!.name, key: index.key[row]!, field: name };
      values[name] = fieldBytes(stored, column, row, where);
    }
    return readAnnotations(annotations, values);
  } catch (error) {
    if (error instanceof SampleDecodeError) return error.reason;
    throw error;
  }
}

/** The size of an image after its EXIF orientation is applied. Zeros if the index does not have it. */
function shownSize({ width, height, orientation }: LoadedIndex, row: number) {
  const isTurned = orientation[row]! >= 5;
  return isTurned ? { width: height[row]!, height: width[row]! } : { width: width[row]!, height: height[row]! };
}

class Tally {
  #objects = 0;
  #images = 0;
  #without = 0;
  #bad = 0;
  #firstBad: { readonly key: string; readonly reason: string } | null = null;
  readonly #classes = new Map<number, { objects: number; images: number }>();
  readonly #perImage = new Distribution();
  readonly #width = new Distribution();
  readonly #height = new Distribution();

  addBad(key: string, reason: string): void {
    this.#bad++;
    this.#firstBad ??= { key, reason };
  }

  add(
    { count, boxes, labels, normalized }: GivenAnnotations,
    size: { readonly width: number; readonly height: number },
  ) {
    this.#objects += count;
    this.#perImage.add(count);
    if (count === 0) this.#without++;
    else this.#images++;
    const seen = new Set<number>();
    for (const label of labels ?? []) {
      const sum = this.#classes.get(label) ?? { objects: 0, images: 0 };
      this.#classes.set(label, sum);
      sum.objects++;
      if (!seen.has(label)) sum.images++;
      seen.add(label);
    }
    if (boxes === null || (normalized.boxes && size.width === 0)) return;
    const scale = normalized.boxes ? size : { width: 1, height: 1 };
    for (let at = 0; at < boxes.length; at += 4) {
      this.#width.add(Math.round((boxes[at + 2]! - boxes[at]!) * scale.width));
      this.#height.add(Math.round((boxes[at + 3]! - boxes[at + 1]!) * scale.height));
    }
  }

  /** The totals. `names` are the classes of the dataset; classes without objects are included. */
  summary(names: readonly string[]): ObjectStats {
    const numbers = this.#classes.size === 0 ? [] : [...new Set([...names.keys(), ...this.#classes.keys()])];
    return {
      objects: this.#objects,
      images: this.#images,
      without: this.#without,
      classes: numbers
        .sort((a, b) => a - b)
        .map((number) => ({
          name: names[number] ?? String(number),
          ...(this.#classes.get(number) ?? { objects: 0, images: 0 }),
        })),
      perImage: this.#perImage.summary(),
      width: this.#width.summary(),
      height: this.#height.summary(),
      bad: { count: this.#bad, first: this.#firstBad },
    };
  }
}
