import { expect, test } from 'vitest';
import { ExactResizeKernel } from '#reader/kernels/exact-resize';
import { exactTaps } from '#reader/kernels/exact-taps';
import type { Axis } from '#reader/kernels/taps';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

/** Bytes [height, width, channels]. */
interface Bytes {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly values: Uint8Array;
}

const PAGES = 32;
const GUARD = 0xa5;
const TARGET = 1 << 20;
const SOURCE = (1 << 20) + (1 << 19);
const FILTERS = [undefined, 'bicubic', 'lanczos', 'box', 'hamming', 'nearest', 'bicubic-aliased'] as const;

const memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true });
const all = new Uint8Array(memory.buffer);
const UNTOUCHED = new Uint8Array(TARGET).fill(GUARD);
const kernel = new ExactResizeKernel(memory);

/** Resizes with the kernel. The result has gaps of `gap` bytes between its rows. Throws if a byte outside the result changed. */
function resize({ values, width, channels }: Bytes, x: Axis, y: Axis, gap: number): Uint8Array {
  const columns = exactTaps(x, true);
  const rows = exactTaps(y, true);
  const stride = x.count * channels + gap;
  const first = (rows.lo * width + columns.lo) * channels;
  all.fill(GUARD);
  all.set(values, SOURCE);
  const before = all.slice(TARGET - 4096);
  let used = 64;
  const allocate = (bytes: number) => {
    const address = used;
    used = Math.ceil((address + bytes) / 16) * 16;
    return address;
  };
  const source = { address: SOURCE + first, stride: width * channels };
  kernel.resize({ source, target: { address: TARGET, stride }, x, y, channels }, allocate);
  if (used > TARGET - 4096) throw new Error('The test has too little memory.');
  const result = new Uint8Array(x.count * y.count * channels);
  const bytes = x.count * channels;
  const after = all.slice(TARGET - 4096);
  for (let row = 0; row < y.count; row++) {
    const at = 4096 + row * stride;
    result.set(after.subarray(at, at + bytes), row * bytes);
    after.set(before.subarray(at, at + bytes), at);
  }
  if (Buffer.compare(before, after) !== 0) throw new Error('A byte outside of the result has changed.');
  const unused = all.subarray(used, TARGET - 4096);
  if (Buffer.compare(unused, UNTOUCHED.subarray(0, unused.length)) !== 0) throw new Error('More memory was used.');
  return result;
}

/** The same in plain loops: rows first, rounded and clipped to bytes after each direction, as in Pillow. */
function reference({ values, width, channels }: Bytes, x: Axis, y: Axis): Uint8Array {
  const columns = exactTaps(x, true);
  const rows = exactTaps(y, true);
  const unit = 2 ** 22;
  const clip = (sum: number) => Math.max(0, Math.min(255, Math.floor(sum / unit + 0.5)));
  const middle = (row: number, column: number, channel: number) => {
    let sum = 0;
    for (let k = 0; k < columns.taps; k++) {
      const from = (row * width + columns.lo + columns.starts[column]! + k) * channels + channel;
      sum += values[from]! * columns.weights[column * columns.taps + k]!;
    }
    return clip(sum);
  };
  const result = new Uint8Array(x.count * y.count * channels);
  for (let row = 0, to = 0; row < y.count; row++) {
    for (let column = 0; column < x.count; column++) {
      for (let channel = 0; channel < channels; channel++, to++) {
        let sum = 0;
        for (let k = 0; k < rows.taps; k++) {
          const value = middle(rows.lo + rows.starts[row]! + k, column, channel);
          sum += value * rows.weights[row * rows.taps + k]!;
        }
        result[to] = clip(sum);
      }
    }
  }
  return result;
}

test('bytes of any number of channels are resized exactly, and no other memory changes', () => {
  const random = randomOf('exact resize');
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 120 * TIMES; round++) {
    const [width, height, channels] = [1 + below(60), 1 + below(60), round % 2 === 0 ? 1 : 1 + below(6)];
    // Black and white make the largest sums, with negative weights too.
    const isExtreme = random() < 0.5;
    const values = Uint8Array.from({ length: width * height * channels }, () =>
      isExtreme ? 255 * below(2) : below(256),
    );
    const axisOf = (source: number): Axis => {
      const output = 1 + below(70);
      const first = below(output);
      const flip = random() < 0.5;
      return { source, output, first, count: 1 + below(output - first), flip, filter: FILTERS[below(FILTERS.length)] };
    };
    const [x, y] = [axisOf(width), axisOf(height)];
    const given = resize({ width, height, channels, values }, x, y, below(3) * 7);
    const expected = reference({ width, height, channels, values }, x, y);
    expect(given, JSON.stringify({ x, y, channels })).toEqual(expected);
  }
});

test('all of a memory of more than 2 GiB can be used, as loaders with many workers do', () => {
  const half = 2 ** 31;
  const pages = (half + (1 << 20)) / 65_536;
  const large = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const bytes = new Uint8Array(large.buffer, half);
  const channels = 4;
  const values = Uint8Array.from({ length: 20 * 20 * channels }, (_, i) => (i * 37) % 256);
  const axis: Axis = { source: 20, output: 9, first: 0, count: 9, flip: false, filter: 'bicubic' };
  bytes.set(values);
  let used = half + (1 << 18);
  const allocate = (size: number) => {
    const address = used;
    used += Math.ceil(size / 16) * 16;
    return address;
  };
  const target = { address: half + (1 << 17), stride: 9 * channels };
  const source = { address: half, stride: 20 * channels };
  new ExactResizeKernel(large).resize({ source, target, x: axis, y: axis, channels }, allocate);
  const given = bytes.slice(1 << 17, (1 << 17) + 9 * 9 * channels);
  expect(given).toEqual(reference({ width: 20, height: 20, channels, values }, axis, axis));
});
