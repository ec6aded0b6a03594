import type { NpyArray } from '@shardtool/format';
import { nameTable } from '@shardtool/format';
import type { NumberType, NumberTypes } from '../dataset/fields/field-names.js';
import type { FieldValue } from '../dataset/fields/field-values.js';
import type { Batch, ViewArrays } from '../loader/deliver/batch/batch.js';
import type { LoaderState } from '../loader/loader-state.js';
import type { PixelValues } from '../transform/pixel-values.js';
import type { Dtype } from '../transform/values.js';

export interface FramedBatch {
  readonly header: object;
  /**
   * The parts of the frame: int32 labels [n], uint8 valid [n], float64 numbers [n]; for a mixture int32 source [n];
   * with buckets three times int32 [n, 2], for the crops; then images that are not in a slot; the other labels of a
   * mix, int32 [n], and its weights, float64 [n]; the draws of views, float32; the annotations; the seeds of rows,
   * uint32 [n, 2]; the values of the option labels, float32; the bytes of fields.
   */
  readonly parts: readonly Uint8Array[];
}

/** Facts that are not part of a batch: its layout, the types of its fields, and whether keys are requested. */
export interface Shown {
  readonly withKeys: boolean;
  /** Whether the seeds of rows are requested. */
  readonly withRowSeeds?: boolean;
  /** Default: 3. */
  readonly channels?: number;
  readonly dtype: Dtype;
  readonly layout: 'nhwc' | 'nchw';
  /** Fields whose values are numbers, and are sent as an array. */
  readonly numberTypes?: NumberTypes;
}

/** Converts a batch to a message. For decoded images, the message has only their offset in the slot file. */
export function frameBatch(batch: Batch, number: number, state: LoaderState | null, shown: Shown): FramedBatch {
  const { epoch, index, size, images, shape, list, encoded, labels, crop, mix, valid, indices, datasetIndex } = batch;
  const parts = [bytesOf(labels), valid, bytesOf(indices)];
  if (datasetIndex !== null) parts.push(bytesOf(datasetIndex));
  const crops = crop === null ? [] : [crop.originalSize, crop.resizedSize, crop.topLeft];
  for (const pairs of crops) parts.push(bytesOf(pairs));
  for (const { pixels } of list ?? []) parts.push(pixels);
  for (const bytes of encoded ?? []) parts.push(bytes);
  if (mix !== null) parts.push(bytesOf(mix.otherLabels), bytesOf(mix.weights));
  const views = frameViews(batch, parts);
  const objects = frameObjects(batch, parts);
  if (shown.withRowSeeds) parts.push(bytesOf(batch.rowSeeds));
  const { labelValues } = batch;
  if (labelValues !== null) parts.push(bytesOf(labelValues.values));
  const header = {
    kind: 'batch',
    number,
    epoch,
    index,
    size,
    state,
    channels: shown.channels ?? 3,
    dtype: views[0]?.dtype ?? shown.dtype,
    layout: views[0]?.layout ?? shown.layout,
    images: images && { offset: images.byteOffset, shape },
    views,
    extraImages: placesOf(batch.extraImages),
    masks: placesOf(batch.masks),
    arrays: Object.entries(batch.arrays).map(([name, { dtype, shape, data }]) => ({
      name,
      dtype,
      shape,
      offset: data.byteOffset,
    })),
    mix: mix && { name: mix.name, weight: mix.weight, numClasses: mix.numClasses, labelSmoothing: mix.labelSmoothing },
    list: list?.map(({ height, width }) => ({ height, width })) ?? null,
    encoded: encoded?.map((bytes) => bytes.length) ?? null,
    objects,
    isMixture: datasetIndex !== null,
    crops: crops.length,
    labelShape: labelValues?.shape ?? null,
    hasRowSeeds: shown.withRowSeeds ?? false,
    keys: shown.withKeys ? batch.keys : null,
    fields: Object.entries(batch.fields).map(([name, values]) => ({
      name,
      ...frameField(values, shown.numberTypes?.get(name) ?? null, parts),
    })),
  };
  return { header, parts };
}

/** Offsets of the views of each group in the slot file, and lengths of their draws. */
function frameViews(
  { views }: Batch,
  parts: Uint8Array[],
): (Pick<ViewArrays, 'dtype' | 'layout' | 'shape'> & {
  readonly name: string;
  readonly offset: number;
  readonly draws: object;
})[] {
  return Object.entries(views).map(([name, { images, dtype, layout, shape, draws }]) => {
    for (const values of Object.values(draws)) parts.push(bytesOf(values));
    const lengths = Object.entries(draws).map(([step, values]) => ({ name: step, length: values.length }));
    return { name, dtype, layout, shape, offset: images.byteOffset, draws: lengths };
  });
}

/** Number of values in each part that follows, in this order; null if there are no annotations. */
function frameObjects(batch: Batch, parts: Uint8Array[]): object | null {
  const { offsets, boxes, boxLabels, boxRows, boxSources, keypoints, polygons } = batch;
  if (offsets === null) return null;
  const arrays = {
    offsets,
    boxes,
    boxLabels,
    boxRows,
    boxSources,
    keypoints: keypoints?.values ?? null,
    points: polygons?.points ?? null,
    pointOffsets: polygons?.pointOffsets ?? null,
    objectOffsets: polygons?.objectOffsets ?? null,
  };
  const given = Object.entries(arrays).flatMap(([name, values]) => (values === null ? [] : [{ name, values }]));
  for (const { values } of given) parts.push(bytesOf(values));
  const lengths = given.map(({ name, values }) => ({ name, length: values.length }));
  return { arrays: lengths, keypoints: keypoints?.count ?? null };
}

function placesOf(arrays: Readonly<Record<string, PixelValues>>): object {
  return nameTable(Object.entries(arrays).map(([name, { byteOffset }]) => [name, byteOffset]));
}

/**
 * Values of a field. If the field has a `type`, they follow the header as float64 [n], with NaN for samples without a
 * value. Otherwise, values that are bytes follow the header; `bytes` has their rows, their lengths and the arrays that
 * they belong to. JSON has no infinite numbers, so `infinite` has their rows and signs.
 */
function frameField(values: readonly (FieldValue | null)[], type: NumberType | null, parts: Uint8Array[]): object {
  if (type !== null) {
    parts.push(bytesOf(Float64Array.from(values, (value) => (typeof value === 'number' ? value : Number.NaN))));
    return { type, values: [], bytes: [] };
  }
  const bytes: { row: number; length: number; array: object | null }[] = [];
  const infinite: [row: number, sign: number][] = [];
  const plain = values.map((value, row) => {
    const array = isArray(value) ? value : null;
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
      infinite.push([row, Math.sign(value)]);
      return null;
    }
    if (array === null && !(value instanceof Uint8Array)) return value;
    const part = array === null ? (value as Uint8Array) : bytesOf(array.data);
    bytes.push({
      row,
      length: part.length,
      array: array && { dtype: array.dtype, shape: array.shape, fortranOrder: array.fortranOrder },
    });
    parts.push(part);
    return null;
  });
  return { type, values: plain, bytes, ...(infinite.length > 0 && { infinite }) };
}

/** Contents of an npy field, because JSON has no typed arrays. */
function isArray(value: FieldValue | null): value is NpyArray {
  return typeof value === 'object' && value !== null && 'data' in value && ArrayBuffer.isView(value.data);
}

/** The memory of an array as bytes. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
