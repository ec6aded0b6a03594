import { expect, test } from 'vitest';
import type { Batch } from '../loader/deliver/batch/batch.js';
import type { LoaderState } from '../loader/loader-state.js';
import { frameBatch } from './batch-frame.js';

const shown = { withKeys: true, dtype: 'uint8', layout: 'nhwc' } as const;
const state = { epoch: 2, position: 8 } as LoaderState;

function batchOf(parts: Partial<Batch>): Batch {
  return {
    epoch: 2,
    index: 1,
    size: 2,
    images: null,
    dtype: 'uint8',
    shape: null,
    views: {},
    extraImages: {},
    masks: {},
    arrays: {},
    offsets: null,
    boxes: null,
    boxLabels: null,
    boxRows: null,
    boxSources: null,
    keypoints: null,
    polygons: null,
    mix: null,
    softLabels: null,
    labelValues: null,
    list: null,
    encoded: null,
    labels: Int32Array.of(3, -1),
    crop: null,
    valid: Uint8Array.of(1, 0),
    indices: Float64Array.of(7, 2 ** 40),
    datasetIndex: null,
    keys: ['a', 'ü'],
    rowSeeds: new Uint32Array(4),
    fields: {},
    release: () => {},
    ...parts,
  };
}

test('the frame has the offset of decoded images and the bytes of encoded images', () => {
  const memory = new Uint8Array(64);
  const decoded = frameBatch(batchOf({ images: memory.subarray(12, 36), shape: [2, 2, 2, 3] }), 9, state, shown);
  expect(decoded.header).toMatchObject({ number: 9, images: { offset: 12, shape: [2, 2, 2, 3] }, keys: ['a', 'ü'] });
  expect(decoded.parts.map((part) => part.length)).toEqual([8, 2, 16]);
  const encoded = frameBatch(batchOf({ encoded: [Uint8Array.of(1, 2, 3), new Uint8Array(0)] }), 9, state, shown);
  expect(encoded.header).toMatchObject({ images: null, encoded: [3, 0] });
  expect(encoded.parts.slice(3)).toEqual([Uint8Array.of(1, 2, 3), new Uint8Array(0)]);
});

test('bytes of a field follow the header in the order of its rows, and other values are in the header', () => {
  const fields = { npy: [null, Uint8Array.of(5)], json: [{ a: [1] }, null] };
  const { header, parts } = frameBatch(batchOf({ fields }), 0, state, { ...shown, withKeys: false });
  expect(header).toMatchObject({
    keys: null,
    fields: [
      { name: 'npy', values: [null, null], bytes: [{ row: 1, length: 1, array: null }] },
      { name: 'json', values: [{ a: [1] }, null], bytes: [] },
    ],
  });
  expect(parts.slice(3)).toEqual([Uint8Array.of(5)]);
});

test('infinite numbers of a column are listed separately, because JSON cannot express them', () => {
  const fields = { v: [Number.NEGATIVE_INFINITY, 0.5] };
  const { header } = frameBatch(batchOf({ fields }), 5, state, shown);
  expect(JSON.parse(JSON.stringify(header))).toMatchObject({
    fields: [{ name: 'v', values: [null, 0.5], bytes: [], infinite: [[0, -1]] }],
  });
});

test('fields of numbers follow as float64, with NaN for a missing value', () => {
  const numberTypes = new Map([['width', 'int' as const]]);
  const { header, parts } = frameBatch(batchOf({ fields: { width: [3, null] } }), 0, state, { ...shown, numberTypes });
  expect(header).toMatchObject({ fields: [{ name: 'width', type: 'int', values: [] }] });
  expect(parts.at(-1)).toEqual(new Uint8Array(Float64Array.of(3, Number.NaN).buffer));
});

test('NumPy arrays follow as bytes, and the header describes them', () => {
  const array = { dtype: '<f4', shape: [2], fortranOrder: false, data: Float32Array.of(1, -1) };
  const { header, parts } = frameBatch(batchOf({ fields: { npy: [null, array] } }), 0, state, shown);
  expect(header).toMatchObject({
    fields: [{ bytes: [{ row: 1, length: 8, array: { dtype: '<f4', shape: [2], fortranOrder: false } }] }],
  });
  expect(parts.at(-1)).toEqual(new Uint8Array(array.data.buffer));
});

test('the header describes extra images, masks and the mix of a batch', () => {
  const memory = new Uint8Array(64);
  const mix = {
    ...({ name: 'cutmix', weight: 0.25, otherLabels: Int32Array.of(-1, 3) } as const),
    ...{ weights: Float64Array.of(0.25, 0.25), numClasses: null, labelSmoothing: 0 },
  };
  const along = { extraImages: { 'second.jpg': memory.subarray(5) }, masks: { 'seg.png': memory.subarray(9) }, mix };
  const { header, parts } = frameBatch(batchOf({ images: memory, ...along }), 0, state, shown);
  expect(header).toMatchObject({
    extraImages: { 'second.jpg': 5 },
    masks: { 'seg.png': 9 },
    mix: { name: 'cutmix', weight: 0.25, numClasses: null, labelSmoothing: 0 },
  });
  expect(parts.at(-2)).toEqual(new Uint8Array(mix.otherLabels.buffer));
  expect(parts.at(-1)).toEqual(new Uint8Array(mix.weights.buffer));
});

test('the seeds of rows follow if they are requested', () => {
  const rowSeeds = Uint32Array.of(1, 2, 3, 4);
  const { header, parts } = frameBatch(batchOf({ rowSeeds }), 0, state, { ...shown, withRowSeeds: true });
  expect(header).toMatchObject({ hasRowSeeds: true });
  expect(parts.at(-1)).toEqual(new Uint8Array(rowSeeds.buffer));
  expect(frameBatch(batchOf({ rowSeeds }), 0, state, shown).header).toMatchObject({ hasRowSeeds: false });
});
