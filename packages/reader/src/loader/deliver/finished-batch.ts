import { nameTable, npyRowValues, type StackedArray } from '@shardtool/format';
import type { CheckedAnnotations } from '../../annotations/options.js';
import { layOutRecord, NO_OBJECTS, readRecords } from '../../annotations/record.js';
import type { Size } from '../../codec/codec.js';
import { type Mixes, mixesLabels, otherRow, partnerOf } from '../../transform/mix.js';
import { FIRST_NUMBER, SampleRandom } from '../../transform/random.js';
import { softLabels } from '../../transform/soft-labels.js';
import type { Dtype } from '../../transform/values.js';
import { readDraws } from '../../views/read-draws.js';
import type { ViewLayout } from '../../views/slot-layout.js';
import { keyOf, locate, placeOf } from '../read/block.js';
import { keptImageColumn } from '../read/readers/image-column.js';
import type { ExtraField } from '../ring/extra-fields.js';
import { imageBytesOf } from '../setup/decoder-output.js';
import type { RaggedImages } from '../setup/ragged-images.js';
import type { Engine } from '../work/engine.js';
import { isSkipped } from './bad-rows.js';
import type { Batch, BatchMix, PixelValues, ViewArrays } from './batch.js';
import { type LabelSource, type LabelValues, labelValues } from './label-values.js';
import type { PendingBatch } from './pending-batch.js';

/** The form of the images of a batch: pixels of one shape, a list, encoded bytes, or no images. */
export type BatchOutput =
  | {
      readonly kind: 'pixels';
      /** The sizes of batches, by number. If all batches have the same size, there is one. */
      readonly sizes: readonly Size[];
      readonly channels: number;
      readonly dtype: Dtype;
      readonly layout: 'nhwc' | 'nchw';
      /** Layout of the views of each image, including the images themselves. Null without views. */
      readonly views: ViewLayout | null;
      /** The images of each sample, if their number varies. Null if each sample has one. */
      readonly ragged: RaggedImages | null;
    }
  | { readonly kind: 'list' }
  | { readonly kind: 'raw' }
  | { readonly kind: 'fields' };

export interface FinishedBatchOptions {
  readonly engine: Engine;
  readonly image: string | undefined;
  readonly output: BatchOutput;
  readonly extraFields: readonly ExtraField[];
  readonly annotations: CheckedAnnotations | null;
  /** True if batches are processed as a whole: by a custom step, or to mix them. */
  readonly whole: boolean;
  /** True if arrays over shared memory are copied, so that the consumer may keep them. */
  readonly copies: boolean;
  /** Source of labels that are not class numbers. */
  readonly labels: LabelSource | null;
  /** The ways to mix batches. */
  readonly mixes: Mixes;
  readonly isMixture: boolean;
  /** The seed of each dataset. */
  readonly seeds: readonly number[];
}

/** The complete batch for the consumer. Its blocks are still in memory; `release` is called at most once. */
export function finishedBatch(pending: PendingBatch, options: FinishedBatchOptions, release: () => void): Batch {
  const { engine, output } = options;
  const { rows } = pending;
  const views = viewsOf(pending, options);
  const bytes =
    output.kind === 'pixels' ? (firstView(views) ?? owned(imagesOf(pending, output, engine), options)) : null;
  if (options.whole) pending.labels.set(engine.facts.labels(pending.slot, rows));
  const mix = options.whole ? mixOf(pending, options) : null;
  let keys: readonly string[] | undefined;
  let rowSeeds: Uint32Array | undefined;
  let soft: Float32Array | undefined;
  let taken: LabelValues | undefined;
  let released = false;
  return {
    epoch: pending.epoch,
    index: pending.planned.index,
    size: rows,
    images: bytes && valuesOf(bytes, output.kind === 'pixels' ? output.dtype : 'uint8'),
    dtype: output.kind === 'pixels' ? output.dtype : null,
    shape: output.kind === 'pixels' ? shapeOf(output, pending) : null,
    views,
    ...extraFieldsOf(pending, options),
    arrays: arraysOf(pending, options),
    ...objectsOf(pending, options),
    ...(pending.imageOffsets === null ? {} : { offsets: pending.imageOffsets.slice() }),
    list: output.kind === 'list' ? pending.list : null,
    encoded: output.kind === 'raw' ? encodedImages(pending, options) : null,
    labels: pending.labels,
    crop: engine.facts.shown(pending.slot, rows),
    mix,
    get labelValues() {
      if (options.labels === null) return null;
      taken ??= labelValues(pending.fields[options.labels.field]!, pending.valid, options.labels);
      return taken;
    },
    get softLabels() {
      if (mix === null || mix.numClasses === null) return null;
      soft ??= softLabels(
        { labels: pending.labels, valid: pending.valid, ...mix },
        { ...mix, numClasses: mix.numClasses },
      );
      return soft;
    },
    valid: pending.valid,
    indices: pending.numbers,
    datasetIndex: options.isMixture ? pending.sources : null,
    get keys() {
      keys ??= pending.blocks.map((block, row) => keyOf(block, pending.items[row]!));
      return keys;
    },
    get rowSeeds() {
      rowSeeds ??= rowSeedsOf(pending, options.seeds);
      return rowSeeds;
    },
    fields: pending.fields,
    release() {
      if (released) return;
      released = true;
      release();
    },
  };
}

/** The arrays of all groups of views; empty without views. */
function viewsOf({ slot, rows, bucket }: PendingBatch, options: FinishedBatchOptions): Batch['views'] {
  const { engine, output } = options;
  const layout = output.kind === 'pixels' ? output.views : null;
  const views = nameTable<ViewArrays>();
  if (layout === null) return views;
  const { groups, firstPart, draws, transforms } = layout;
  const drawn = draws.length === 0 ? null : engine.extraFieldBytes(slot, firstPart + groups.length - 1, rows, bucket);
  for (const [i, group] of groups.entries()) {
    const part =
      i === 0 ? engine.slotBytes(slot, rows, bucket) : engine.extraFieldBytes(slot, firstPart + i - 1, rows, bucket);
    const { name, count, channels, dtype, size } = group;
    const image =
      group.layout === 'nhwc'
        ? ([size.height, size.width, channels] as const)
        : ([channels, size.height, size.width] as const);
    const { first } = group;
    views[name] = {
      images: valuesOf(owned(part, options), dtype),
      dtype,
      layout: group.layout,
      shape: [count, rows, ...image],
      draws:
        drawn === null
          ? {}
          : readDraws(valuesOf(drawn, 'float32') as Float32Array, draws, {
              first,
              count,
              rows,
              views: transforms.length,
            }),
    };
  }
  return views;
}

/** Bytes of the first view, which are the first of its group. Null without views. */
function firstView(views: Batch['views']): Uint8Array | null {
  const [group] = Object.values(views);
  if (group === undefined) return null;
  const { buffer, byteOffset, byteLength } = group.images;
  return new Uint8Array(buffer, byteOffset, byteLength / group.shape[0]);
}

function rowSeedsOf({ rows, blocks, items, numbers, sources }: PendingBatch, seeds: readonly number[]): Uint32Array {
  const randoms = seeds.map((seed) => new SampleRandom(seed));
  const words = new Uint32Array(2 * rows);
  for (let row = 0; row < rows; row++) {
    const { pass, occurrence } = blocks[row]!;
    const random = randoms[sources[row]!]!;
    random.start(pass, numbers[row]!, occurrence[items[row]!]!, FIRST_NUMBER.rowSeeds);
    for (let word = 0; word < 2; word++) words[2 * row + word] = random.next() * 2 ** 32;
  }
  return words;
}

function shapeOf(
  { sizes, channels, layout }: Extract<BatchOutput, { kind: 'pixels' }>,
  { rows, bucket, imageOffsets }: PendingBatch,
): [number, number, number, number] {
  const { width, height } = sizes[bucket]!;
  const images = imageOffsets === null ? rows : imageOffsets[rows]!;
  return layout === 'nhwc' ? [images, height, width, channels] : [images, channels, height, width];
}

/** Bytes of the images of a batch. If samples have several, those of all rows follow each other without gaps. */
function imagesOf(
  { slot, rows, bucket, imageOffsets }: PendingBatch,
  output: Extract<BatchOutput, { kind: 'pixels' }>,
  engine: Engine,
): Uint8Array {
  const bytes = engine.slotBytes(slot, rows, bucket);
  if (imageOffsets === null) return bytes;
  return bytes.subarray(0, imageOffsets[rows]! * imageBytesOf(output, output.sizes[bucket]!));
}

function extraFieldsOf(
  { slot, rows, bucket }: PendingBatch,
  options: FinishedBatchOptions,
): Pick<Batch, 'extraImages' | 'masks'> {
  const { engine, output, extraFields } = options;
  const extraImages = nameTable<PixelValues>();
  const masks = nameTable<Uint8Array>();
  for (const [i, { field, kind }] of extraFields.entries()) {
    if (kind !== 'mask' && kind !== 'image') continue;
    const bytes = owned(engine.extraFieldBytes(slot, i, rows, bucket), options);
    if (kind === 'mask') masks[field] = bytes;
    else extraImages[field] = valuesOf(bytes, output.kind === 'pixels' ? output.dtype : 'uint8');
  }
  return { extraImages, masks };
}

function arraysOf({ slot, rows, bucket }: PendingBatch, options: FinishedBatchOptions): Batch['arrays'] {
  const arrays = nameTable<StackedArray>();
  for (const [i, { field, array }] of options.extraFields.entries()) {
    if (array === undefined) continue;
    const bytes = owned(options.engine.extraFieldBytes(slot, i, rows, bucket), options);
    arrays[field] = { dtype: array.dtype, shape: [rows, ...array.shape], data: npyRowValues(bytes, array) };
  }
  return arrays;
}

function objectsOf({ slot, rows, bucket }: PendingBatch, { engine, annotations, extraFields }: FinishedBatchOptions) {
  if (annotations === null) return NO_OBJECTS;
  const bytes = engine.extraFieldBytes(slot, extraFields.length, rows, bucket);
  return readRecords(bytes, rows, layOutRecord(annotations), annotations);
}

function encodedImages(pending: PendingBatch, options: FinishedBatchOptions): Uint8Array[] {
  const { engine, image } = options;
  return pending.blocks.map((block, row) => {
    const { index, indexRow, stretches } = locate(block, pending.items[row]!);
    const column = keptImageColumn(index, image);
    const offset = column.offset[indexRow]!;
    if (offset < 0) return new Uint8Array(0);
    return owned(engine.encoded(placeOf(block, stretches, offset), column.bytes[indexRow]!), options);
  });
}

/** Describes how the batch was mixed. Null if it was not mixed. */
function mixOf(pending: PendingBatch, { engine, mixes }: FinishedBatchOptions): BatchMix | null {
  const { slot, rows, labels } = pending;
  const fact = engine.facts.mix(slot, rows);
  if (fact === null) return null;
  const mix = mixes[fact.index]!;
  const { weights } = fact;
  if (!mixesLabels(mix)) {
    const { name } = mix;
    return { name, weight: weights[0]!, weights, otherLabels: labels.slice(), numClasses: null, labelSmoothing: 0 };
  }
  const partner = partnerOf(mix);
  const otherLabels = labels.map((label, row) => {
    const other = otherRow(partner, row, rows);
    // A row is not mixed with a sample that was skipped.
    return isSkipped(pending, other) ? label : labels[other]!;
  });
  const { name, numClasses = null, labelSmoothing } = mix;
  return { name, weight: weights[0]!, weights, otherLabels, numClasses, labelSmoothing };
}

function owned(bytes: Uint8Array, { copies }: FinishedBatchOptions): Uint8Array {
  return copies ? new Uint8Array(bytes) : bytes;
}

function valuesOf(bytes: Uint8Array, dtype: Dtype): PixelValues {
  const { buffer, byteOffset, byteLength } = bytes;
  if (dtype === 'float32') return new Float32Array(buffer, byteOffset, byteLength / 4);
  if (dtype === 'uint16') return new Uint16Array(buffer, byteOffset, byteLength / 2);
  return dtype === 'int16' ? new Int16Array(buffer, byteOffset, byteLength / 2) : bytes;
}
