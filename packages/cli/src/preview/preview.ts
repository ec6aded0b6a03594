/** A picture of the first batch of an epoch: every image with its class below. */
import { writeFile } from 'node:fs/promises';
import { type Batch, type Dataset, type LoaderOptions, normalizationOf, type TransformInput } from '@shardtool/reader';
import sharp from 'sharp';
import { drawText, TEXT_HEIGHT } from './bitmap-font.js';

export interface Grid {
  readonly columns: number;
  readonly rows: number;
}

export interface PreviewOptions {
  readonly transform: TransformInput;
  /** Of the loader whose first batch is shown. */
  readonly loader: LoaderOptions;
  readonly grid: Grid;
  /** PNG file. */
  readonly output: string;
}

/** RGB, 3 bytes a pixel. */
export interface Canvas {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

/** Between images, and around their labels. */
const GAP = 6;
const BACKGROUND = 24;

/** How many images are shown, and of which size each is. */
export interface Shown {
  readonly images: number;
  readonly width: number;
  readonly height: number;
}

/** Writes the picture. Throws what the loader throws. */
export async function writePreview(dataset: Dataset, options: PreviewOptions): Promise<Shown> {
  const { transform, grid, output } = options;
  const batchSize = Math.min(grid.columns * grid.rows, dataset.size);
  const loader = dataset.loader({
    ...options.loader,
    transform,
    batchSize,
    prefetchBatches: 1,
    lastBatch: 'partial',
  });
  try {
    for await (const batch of loader) {
      const { pixels, width, height } = drawBatch(batch, dataset.classes, grid, valueRange(transform));
      await writeFile(
        output,
        await sharp(pixels, { raw: { width, height, channels: 3 } })
          .png()
          .toBuffer(),
      );
      return { images: batch.size, ...sizeOf(batch) };
    }
  } finally {
    await loader.close();
  }
  return { images: 0, width: 0, height: 0 };
}

function sizeOf({ shape }: Batch): { width: number; height: number } {
  const [, first, second, third] = shape!;
  return third === 3 ? { height: first, width: second } : { height: second, width: third };
}

/** Undoes `normalize` and `toDtype`: a value times `scale` plus `bias` is 0 to 255, per channel. */
interface ValueRange {
  readonly scale: readonly [number, number, number];
  readonly bias: readonly [number, number, number];
}

function valueRange(transform: TransformInput): ValueRange {
  const { mean, std } = normalizationOf(transform) ?? { mean: [0, 0, 0], std: [1, 1, 1] };
  const triple = (of: (channel: number) => number) => [of(0), of(1), of(2)] as const;
  return { scale: triple((c) => std[c]! * 255), bias: triple((c) => mean[c]! * 255) };
}

/** Draws the images of a batch, which are uint8, float32 or float16, in rows of `grid.columns`. */
export function drawBatch(batch: Batch, classes: readonly string[], { columns }: Grid, range: ValueRange): Canvas {
  const { width, height } = sizeOf(batch);
  const across = Math.min(columns, batch.size);
  const down = Math.ceil(batch.size / across);
  const pitchY = height + TEXT_HEIGHT + 2 * GAP;
  const canvas = blank(GAP + across * (width + GAP), GAP + down * pitchY);
  const valueAt = valuesOf(batch, width * height, range);
  for (let row = 0; row < batch.size; row++) {
    const left = GAP + (row % across) * (width + GAP);
    const top = GAP + Math.floor(row / across) * pitchY;
    for (let pixel = 0; pixel < width * height; pixel++) {
      const at = ((top + Math.floor(pixel / width)) * canvas.width + left + (pixel % width)) * 3;
      for (let channel = 0; channel < 3; channel++) canvas.pixels[at + channel] = valueAt(row, pixel, channel);
    }
    drawText(canvas, labelOf(batch.labels[row]!, classes), left, top + height + GAP / 2, width);
  }
  return canvas;
}

function labelOf(label: number, classes: readonly string[]): string {
  return label < 0 ? '-' : (classes[label] ?? String(label));
}

function valuesOf(batch: Batch, pixels: number, { scale, bias }: ValueRange) {
  const { images, dtype, shape } = batch;
  const isPlanar = shape![3] !== 3;
  const halves =
    dtype === 'float16' ? new Uint16Array(images!.buffer, images!.byteOffset, images!.byteLength / 2) : null;
  return (row: number, pixel: number, channel: number): number => {
    const at = row * pixels * 3 + (isPlanar ? channel * pixels + pixel : pixel * 3 + channel);
    if (dtype === 'uint8') return images![at]!;
    const value = halves === null ? images![at]! : halfFloat(halves[at]!);
    return Math.round(Math.max(0, Math.min(255, value * scale[channel]! + bias[channel]!)));
  };
}

/** IEEE 754 binary16. */
function halfFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

function blank(width: number, height: number): Canvas {
  return { width, height, pixels: new Uint8Array(width * height * 3).fill(BACKGROUND) };
}
