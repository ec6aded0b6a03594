import { expect, test } from 'vitest';
import { imageArray, maskArray } from './device-array.js';

const size = { rows: 5, height: 4, width: 7 };

test('strides count values, starting with the last dimension', () => {
  const nchw = imageArray(64n, { dtype: 'float16', layout: 'nchw' }, size);
  expect(nchw).toEqual({ devicePointer: 64n, dtype: 'float16', shape: [5, 3, 4, 7], strides: [84, 28, 7, 1] });
  const nhwc = imageArray(64n, { dtype: 'float32', layout: 'nhwc' }, size);
  expect([nhwc.shape, nhwc.strides]).toEqual([
    [5, 4, 7, 3],
    [84, 21, 3, 1],
  ]);
});

test('a mask has the type uint8 and no channel dimension', () => {
  expect(maskArray(0n, size)).toEqual({ devicePointer: 0n, dtype: 'uint8', shape: [5, 4, 7], strides: [28, 7, 1] });
});
