import { nameTable, npyRowValues, type StackedArray } from '@shardtool/format';
import type { CheckedAnnotations } from '../../../annotations/options.js';
import { layOutRecord, NO_OBJECTS, readRecords } from '../../../annotations/record.js';
import { type PixelValues, pixelValues } from '../../../transform/pixel-values.js';
import { readDraws } from '../../../views/read-draws.js';
import type { ExtraField } from '../../ring/extra-fields.js';
import type { BatchOutput } from '../../setup/batch-output.js';
import { imageBytesOf } from '../../setup/decoder-output.js';
import type { SlotContents } from '../../work/engine.js';
import type { PendingBatch } from '../pending-batch.js';
import type { Batch, ViewArrays } from './batch.js';

export interface SlotArraysOptions {
  readonly output: BatchOutput;
  readonly extraFields: readonly ExtraField[];
  readonly annotations: CheckedAnnotations | null;
  /** True if arrays over shared memory are copied, so that the consumer may keep them. */
  readonly copies: boolean;
}

/** The parts of a batch that are arrays over the memory of its slot. */
type SlotArrays = Pick<Batch, 'images' | 'dtype' | 'shape' | 'views' | 'extraImages' | 'masks' | 'arrays'> &
  ReturnType<typeof objectsOf>;

/** The arrays of a complete batch: its images, views, extra images, masks, stacked arrays and annotations. */
export function slotArrays(pending: PendingBatch, contents: SlotContents, options: SlotArraysOptions): SlotArrays {
  const { output } = options;
  const { rows } = pending;
  const { parts } = contents;
  const views = viewsOf(rows, contents, options);
  const bytes =
    output.kind === 'pixels' ? (firstView(views) ?? owned(imagesOf(pending, contents.images, output), options)) : null;
  return {
    images: bytes && pixelValues(bytes, output.kind === 'pixels' ? output.dtype : 'uint8'),
    dtype: output.kind === 'pixels' ? output.dtype : null,
    shape: output.kind === 'pixels' ? shapeOf(output, pending) : null,
    views,
    ...extraFieldsOf(parts, options),
    arrays: arraysOf(rows, parts, options),
    ...objectsOf(rows, parts, options),
  };
}

/** The arrays of all groups of views; empty without views. */
function viewsOf(rows: number, { images, parts }: SlotContents, options: SlotArraysOptions): Batch['views'] {
  const { output } = options;
  const layout = output.kind === 'pixels' ? output.views : null;
  const views = nameTable<ViewArrays>();
  if (layout === null) return views;
  const { groups, firstPart, draws, transforms } = layout;
  const drawn = draws.length === 0 ? null : parts[firstPart + groups.length - 1]!;
  for (const [i, group] of groups.entries()) {
    const part = i === 0 ? images : parts[firstPart + i - 1]!;
    const { name, count, channels, dtype, size } = group;
    const image =
      group.layout === 'nhwc'
        ? ([size.height, size.width, channels] as const)
        : ([channels, size.height, size.width] as const);
    const { first } = group;
    views[name] = {
      images: pixelValues(owned(part, options), dtype),
      dtype,
      layout: group.layout,
      shape: [count, rows, ...image],
      draws:
        drawn === null
          ? {}
          : readDraws(pixelValues(drawn, 'float32') as Float32Array, draws, {
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

/** Bytes of the images of a batch. If samples have several, those of all rows follow each other without gaps. */
function imagesOf(
  { rows, bucket, imageOffsets }: PendingBatch,
  bytes: Uint8Array,
  output: Extract<BatchOutput, { kind: 'pixels' }>,
): Uint8Array {
  if (imageOffsets === null) return bytes;
  return bytes.subarray(0, imageOffsets[rows]! * imageBytesOf(output, output.sizes[bucket]!));
}

function shapeOf(
  { sizes, channels, layout }: Extract<BatchOutput, { kind: 'pixels' }>,
  { rows, bucket, imageOffsets }: PendingBatch,
): [number, number, number, number] {
  const { width, height } = sizes[bucket]!;
  const images = imageOffsets === null ? rows : imageOffsets[rows]!;
  return layout === 'nhwc' ? [images, height, width, channels] : [images, channels, height, width];
}

function extraFieldsOf(parts: SlotContents['parts'], options: SlotArraysOptions): Pick<Batch, 'extraImages' | 'masks'> {
  const { output, extraFields } = options;
  const extraImages = nameTable<PixelValues>();
  const masks = nameTable<Uint8Array>();
  for (const [i, { field, kind }] of extraFields.entries()) {
    if (kind !== 'mask' && kind !== 'image') continue;
    const bytes = owned(parts[i]!, options);
    if (kind === 'mask') masks[field] = bytes;
    else extraImages[field] = pixelValues(bytes, output.kind === 'pixels' ? output.dtype : 'uint8');
  }
  return { extraImages, masks };
}

function arraysOf(rows: number, parts: SlotContents['parts'], options: SlotArraysOptions): Batch['arrays'] {
  const arrays = nameTable<StackedArray>();
  for (const [i, { field, array }] of options.extraFields.entries()) {
    if (array === undefined) continue;
    const bytes = owned(parts[i]!, options);
    arrays[field] = { dtype: array.dtype, shape: [rows, ...array.shape], data: npyRowValues(bytes, array) };
  }
  return arrays;
}

function objectsOf(rows: number, parts: SlotContents['parts'], { annotations, extraFields }: SlotArraysOptions) {
  if (annotations === null) return NO_OBJECTS;
  return readRecords(parts[extraFields.length]!, rows, layOutRecord(annotations), annotations);
}

/** The bytes, or a copy of them if the consumer may keep them. */
export function owned(bytes: Uint8Array, { copies }: Pick<SlotArraysOptions, 'copies'>): Uint8Array {
  return copies ? new Uint8Array(bytes) : bytes;
}
