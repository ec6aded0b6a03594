import { expect, test } from 'vitest';
import { exactTaps } from '#reader/kernels/exact-taps';
import type { Axis } from '#reader/kernels/taps';
import { WideResizeKernel } from '#reader/kernels/wide-resize';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const ARRAYS = { uint16: Uint16Array, int16: Int16Array, float32: Float32Array };
const RANGES = { uint16: [0, 65_535], int16: [-32_768, 32_767], float32: [-1e6, 1e6] } as const;
type Dtype = keyof typeof ARRAYS;
type Values = Uint16Array | Int16Array | Float32Array;

const PAGES = 64;
const GUARD = 0xa5;
const TARGET = 1 << 21;
const SOURCE = (1 << 21) + (1 << 20);
const FILTERS = [undefined, 'bicubic', 'lanczos', 'box', 'hamming', 'nearest', 'bicubic-aliased'] as const;

const memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true });
const all = new Uint8Array(memory.buffer);
const buffer = memory.buffer as unknown as ArrayBuffer;

/** An image [height, width, channels]. */
interface Image {
  readonly width: number;
  readonly channels: number;
  readonly dtype: Dtype;
  readonly values: Values;
}

/** Resizes with the kernel. The result has gaps of `gap` values between its rows. Throws if a byte outside the result changed. */
function resize({ values, width, channels, dtype }: Image, x: Axis, y: Axis, gap: number): Values {
  const bytes = values.BYTES_PER_ELEMENT;
  const [columns, rows] = [exactTaps(x, false), exactTaps(y, false)];
  const stride = x.count * channels + gap;
  all.fill(GUARD);
  new ARRAYS[dtype](buffer, SOURCE, values.length).set(values);
  const before = all.slice(TARGET);
  let used = 64;
  const allocate = (size: number) => {
    const address = used;
    used = Math.ceil((address + size) / 16) * 16;
    return address;
  };
  const source = {
    address: SOURCE + (rows.lo * width + columns.lo) * channels * bytes,
    stride: width * channels * bytes,
  };
  const target = { address: TARGET, stride: stride * bytes };
  new WideResizeKernel(memory, dtype).resize({ source, target, x, y, channels }, allocate);
  const result = new ARRAYS[dtype](x.count * y.count * channels);
  const made = new ARRAYS[dtype](buffer, TARGET, y.count * stride);
  for (let row = 0; row < y.count; row++) {
    const end = row * stride + x.count * channels;
    result.set(made.subarray(row * stride, end), row * x.count * channels);
    all.set(before.subarray(row * stride * bytes, end * bytes), TARGET + row * stride * bytes);
  }
  if (Buffer.compare(before, all.subarray(TARGET)) !== 0) throw new Error('A byte outside of the result has changed.');
  const unused = all.subarray(used, TARGET);
  if (Buffer.compare(unused, Buffer.alloc(unused.length, GUARD)) !== 0) throw new Error('More memory was used.');
  return result;
}

/** The same in plain loops: rows first, kept as floats of 32 bits, and rounded at the end. */
function reference({ values, width, channels, dtype }: Image, x: Axis, y: Axis): Values {
  const [columns, rows] = [exactTaps(x, false), exactTaps(y, false)];
  const sumOf = (taps: number, weights: Float64Array, at: number, tap: (k: number) => number) => {
    let sum = 0;
    for (let k = 0; k < taps; k++) {
      const weight = weights[at * taps + k]!;
      if (weight !== 0) sum += tap(k) * weight;
    }
    return sum;
  };
  const middle = new Float32Array((rows.hi - rows.lo) * x.count * channels);
  for (let i = 0; i < middle.length; i++) {
    const [channel, column, row] = [
      i % channels,
      Math.floor(i / channels) % x.count,
      Math.floor(i / channels / x.count),
    ];
    const first = ((rows.lo + row) * width + columns.lo + columns.starts[column]!) * channels + channel;
    middle[i] = sumOf(columns.taps, columns.weights, column, (k) => values[first + k * channels]!);
  }
  const result = new ARRAYS[dtype](x.count * y.count * channels);
  const perRow = x.count * channels;
  const [low, high] = RANGES[dtype];
  for (let i = 0; i < result.length; i++) {
    const [at, row] = [i % perRow, Math.floor(i / perRow)];
    const sum = sumOf(rows.taps, rows.weights, row, (k) => middle[(rows.starts[row]! + k) * perRow + at]!);
    result[i] = dtype === 'float32' ? sum : Math.max(low, Math.min(high, Math.round(sum)));
  }
  return result;
}

test('16-bit integers and floats of any number of channels are summed in 64 bits, and no other memory changes', () => {
  const random = randomOf('wide resize');
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 90 * TIMES; round++) {
    const dtype = (['uint16', 'int16', 'float32'] as const)[round % 3]!;
    const [width, height, channels] = [1 + below(60), 1 + below(60), round % 2 === 0 ? 1 : 1 + below(6)];
    const [low, high] = RANGES[dtype];
    // The ends of the range make the largest sums, with negative weights too.
    const isExtreme = random() < 0.5;
    const next = () => (isExtreme ? [low, high][below(2)]! : low + random() * (high - low));
    const values = new ARRAYS[dtype](Array.from({ length: width * height * channels }, next));
    const axisOf = (source: number): Axis => {
      const output = 1 + below(70);
      const first = below(output);
      const flip = random() < 0.5;
      return { source, output, first, count: 1 + below(output - first), flip, filter: FILTERS[below(FILTERS.length)] };
    };
    const [x, y] = [axisOf(width), axisOf(height)];
    const image = { width, channels, dtype, values };
    expect(resize(image, x, y, below(3) * 7), JSON.stringify({ x, y, channels, dtype })).toEqual(
      reference(image, x, y),
    );
  }
});

test('a value that is NaN or infinite changes only the pixels in which it has a weight', () => {
  const values = new Float32Array(64).fill(1);
  values[0] = Number.POSITIVE_INFINITY;
  values[63] = Number.NaN;
  const axis: Axis = { source: 8, output: 8, first: 0, count: 8, flip: true, filter: 'bicubic-aliased' };
  const given = resize({ width: 8, channels: 1, dtype: 'float32', values }, axis, { ...axis, flip: false }, 0);
  const strange = [...given.keys()].filter((i) => given[i] !== 1);
  expect(strange).toEqual([7, 56]);
  expect([given[7], given[56]]).toEqual([Number.POSITIVE_INFINITY, Number.NaN]);
});
