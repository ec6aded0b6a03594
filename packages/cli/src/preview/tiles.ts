/** Converts rows of a batch, with values of any type, to pictures of 3 bytes per pixel. */
import { type Batch, outputOf, type TransformInput } from '@shardtool/reader';

/** Undoes `normalize` and `toDtype`: a value times `scale` plus `bias` is 0 to 255, per channel. */
export interface ValueRange {
  readonly scale: readonly [number, number, number];
  readonly bias: readonly [number, number, number];
}

export function valueRange(transform: TransformInput): ValueRange {
  const { mean, std } = outputOf(transform).normalization ?? { mean: [0, 0, 0], std: [1, 1, 1] };
  const triple = (of: (channel: number) => number) => [of(0), of(1), of(2)] as const;
  return { scale: triple((c) => std[c]! * 255), bias: triple((c) => mean[c]! * 255) };
}

export function sizeOf({ shape }: Pick<Batch, 'shape'>): { width: number; height: number } {
  const [, first, second, third] = shape!;
  return third === 3 ? { height: first, width: second } : { height: second, width: third };
}

/** The parts of a batch that describe its images. */
export type BatchPixels = Pick<Batch, 'images' | 'dtype' | 'shape'>;

/** An image of a batch of uint8, float32 or float16. */
export function imageTile(batch: BatchPixels, row: number, { scale, bias }: ValueRange): Uint8Array {
  const { images, dtype, shape } = batch;
  const { width, height } = sizeOf(batch);
  const pixels = width * height;
  const isPlanar = shape![3] !== 3;
  const halves =
    dtype === 'float16' ? new Uint16Array(images!.buffer, images!.byteOffset, images!.byteLength / 2) : null;
  const tile = new Uint8Array(pixels * 3);
  for (let i = 0; i < tile.length; i++) {
    const [pixel, channel] = [Math.floor(i / 3), i % 3];
    const at = row * tile.length + (isPlanar ? channel * pixels + pixel : i);
    const value = halves === null ? images![at]! : halfFloat(halves[at]!);
    tile[i] =
      dtype === 'uint8' ? value : Math.round(Math.max(0, Math.min(255, value * scale[channel]! + bias[channel]!)));
  }
  return tile;
}

/** Returns a mask in colours: 0 is black, and every other value has its own colour. */
export function maskTile(values: Uint8Array): Uint8Array {
  const tile = new Uint8Array(values.length * 3);
  values.forEach((value, pixel) => {
    if (value > 0) tile.set(colourOf(value), pixel * 3);
  });
  return tile;
}

/** Consecutive colours are the golden angle apart, so that neighbouring classes differ. */
export function colourOf(value: number): [number, number, number] {
  const hue = (value * 137.508) % 360;
  const part = (offset: number) =>
    Math.round(255 * Math.max(0, Math.min(1, Math.abs(((hue + offset) % 360) / 60 - 3) - 1)));
  return [part(0), part(240), part(120)];
}

/** IEEE 754 binary16. */
function halfFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}
