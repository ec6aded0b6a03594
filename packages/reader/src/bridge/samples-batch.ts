import { type NpyArray, nameTable } from '@shardtool/format';
import { NO_OBJECTS } from '../annotations/record.js';
import { type FieldValue, fieldValue } from '../dataset/fields/field-values.js';
import type { Sample } from '../dataset/samples.js';
import type { Batch } from '../loader/deliver/batch/batch.js';
import type { DecodedSample } from '../open/sample-decoder.js';

/** Converts single samples to one message: a batch whose images are a list, or stay encoded. */
export function batchOfDecoded(samples: readonly DecodedSample[]): Batch {
  const isRaw = samples.some(({ encoded }) => encoded !== null);
  const isDecoded = samples.some(({ image }) => image !== null);
  return {
    ...facts(samples),
    list: isDecoded ? samples.map(({ image }) => image!) : null,
    encoded: isRaw ? samples.map(({ encoded }) => encoded!) : null,
    fields: fieldTable(samples.map((sample) => ({ ...sample.fields, ...maskArrays(sample) }))),
  };
}

/**
 * Like {@link batchOfDecoded} for samples as they are stored, with all fields (the image too) and all label columns as
 * values.
 */
export function batchOfStored(samples: readonly Sample[]): Batch {
  const values = samples.map(({ fields, columns }) => {
    const all = nameTable<FieldValue | null>();
    for (const [name, value] of Object.entries(columns)) all[name] = value;
    for (const [name, bytes] of Object.entries(fields)) all[name] = fieldValue(name, bytes);
    return all;
  });
  return { ...facts(samples), list: [], fields: fieldTable(values) };
}

/** The masks of a sample by name, as arrays of the size of its image. */
function maskArrays({ masks, image }: DecodedSample): Record<string, NpyArray> {
  if (image === null) return {};
  const { height, width } = image;
  const arrays = Object.entries(masks).map(([name, data]) => {
    return [name, { dtype: '|u1', shape: [height, width], fortranOrder: false, data }] as const;
  });
  return nameTable(arrays);
}

function facts(samples: readonly Pick<Sample, 'index' | 'key' | 'label'>[]): Batch {
  return {
    epoch: 0,
    index: 0,
    size: samples.length,
    images: null,
    dtype: null,
    shape: null,
    views: {},
    extraImages: {},
    masks: {},
    arrays: {},
    ...NO_OBJECTS,
    list: null,
    encoded: null,
    labels: Int32Array.from(samples, ({ label }) => label),
    crop: null,
    mix: null,
    softLabels: null,
    labelValues: null,
    valid: new Uint8Array(samples.length).fill(1),
    indices: Float64Array.from(samples, ({ index }) => index),
    datasetIndex: null,
    keys: samples.map(({ key }) => key),
    rowSeeds: new Uint32Array(2 * samples.length),
    fields: {},
    release() {},
  };
}

function fieldTable(
  rows: readonly Readonly<Record<string, FieldValue | null>>[],
): Record<string, readonly (FieldValue | null)[]> {
  const table = nameTable<readonly (FieldValue | null)[]>();
  for (const name of new Set(rows.flatMap((row) => Object.keys(row))))
    table[name] = rows.map((row) => row[name] ?? null);
  return table;
}
