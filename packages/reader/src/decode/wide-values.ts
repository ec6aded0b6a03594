/** Arithmetic on pixels of any number of channels, of uint8, uint16, int16 or float32. */
import type { Size } from '../codec/codec.js';
import type { PixelDtype, PixelFormat } from '../codec/pixel-format.js';
import type { Axis } from '../kernels/taps.js';
import type { RotateEffect } from '../transform/steps/geometry/rotation.js';
import type { Dtype } from '../transform/values.js';

/** Values of pixels, row by row. */
export type Values = Uint8Array | Uint16Array | Int16Array | Float32Array;

const ARRAYS = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  float16: Uint16Array,
  float32: Float32Array,
};
const LIMITS = { uint8: [0, 255], uint16: [0, 65_535], int16: [-32_768, 32_767] } as const;

/** Values at an address of the scratch memory. float16 values are their bits. */
export function valuesAt(memory: Uint8Array, dtype: Dtype, address: number, count: number): Values {
  return new ARRAYS[dtype](memory.buffer as ArrayBuffer, address, count);
}

/** A picture without gaps between its rows. */
export interface Picture extends Size {
  readonly values: Values;
}

/** Rows of values: the index of the first one, and the number of values from one row to the next. */
export interface Rows {
  readonly values: Values;
  readonly at: number;
  readonly stride: number;
}

/** Converts the bytes of a channel by a table. Bytes have 256 values, which are computed once. */
export function lookUp(
  bytes: Uint8Array,
  table: Float64Array,
  result: Values,
  { channel, channels, to, step }: { channel: number; channels: number; to: number; step: number },
): void {
  for (let from = channel; from < bytes.length; from += channels, to += step) result[to] = table[bytes[from]!]!;
}

export function copyFlipped(
  from: Rows,
  to: Rows,
  { x, y, channels }: { readonly x: Axis; readonly y: Axis; readonly channels: number },
): void {
  for (let row = 0; row < y.count; row++) {
    let read = from.at + (y.flip ? y.count - 1 - row : row) * from.stride;
    let write = to.at + row * to.stride;
    if (!x.flip) {
      to.values.set(from.values.subarray(read, read + x.count * channels), write);
      continue;
    }
    read += (x.count - 1) * channels;
    for (let column = 0; column < x.count; column++, read -= channels, write += channels) {
      for (let channel = 0; channel < channels; channel++) to.values[write + channel] = from.values[read + channel]!;
    }
  }
}

function rounded(value: number, dtype: Exclude<PixelDtype, 'float32'>): number {
  const [low, high] = LIMITS[dtype];
  return Math.max(low, Math.min(high, Math.round(value)));
}

export function channelOf(value: number | readonly number[], channel: number, channels: number): number {
  if (typeof value === 'number') return value;
  return value.length === channels ? value[channel]! : value[0]!;
}

export function fillAll(values: Values, fill: number | readonly number[], channels: number): void {
  for (let channel = 0; channel < channels; channel++) {
    const value = channelOf(fill, channel, channels);
    for (let i = channel; i < values.length; i += channels) values[i] = value;
  }
}

/** Rotates (torchvision.transforms.v2.functional `affine_image` for tensors): pixels outside the source are mixed with the fill. */
export function rotate(
  from: Picture,
  to: Picture,
  { matrix: [a, b, c, d, e, f], interpolation, fill }: RotateEffect,
  { channels, dtype }: PixelFormat,
): void {
  const fills = Array.from({ length: channels }, (_, channel) => channelOf(fill ?? 0, channel, channels));
  const isNearest = interpolation === 'nearest';
  const offset = isNearest ? 0 : -0.5;
  const at = (row: number, column: number, channel: number) =>
    from.values[(row * from.width + column) * channels + channel]!;
  let write = 0;
  for (let row = 0; row < to.height; row++) {
    const y = row - (to.height - 1) / 2;
    for (let column = 0; column < to.width; column++, write += channels) {
      const x = column - (to.width - 1) / 2;
      const fromX = a * x + b * y + c + from.width / 2 + offset;
      const fromY = d * x + e * y + f + from.height / 2 + offset;
      const [left, upper] = [Math.floor(fromX), Math.floor(fromY)];
      if (isNearest) {
        const isInside = left >= 0 && upper >= 0 && left < from.width && upper < from.height;
        for (let channel = 0; channel < channels; channel++)
          to.values[write + channel] = isInside ? at(upper, left, channel) : fills[channel]!;
        continue;
      }
      for (let channel = 0; channel < channels; channel++) {
        let sum = 0;
        let inside = 0;
        for (let corner = 0; corner < 4; corner++) {
          const [u, v] = [left + (corner & 1), upper + (corner >> 1)];
          if (u < 0 || v < 0 || u >= from.width || v >= from.height) continue;
          const weight = (1 - Math.abs(u - fromX)) * (1 - Math.abs(v - fromY));
          sum += at(v, u, channel) * weight;
          inside += weight;
        }
        // With a fill, torchvision weighs pixels at the edge twice: once because there are zeros beyond it, and once by
        // the mask of the fill.
        const value = fill === null ? sum : sum * inside + (1 - inside) * fills[channel]!;
        to.values[write + channel] = dtype === 'float32' ? value : rounded(value, dtype);
      }
    }
  }
}
