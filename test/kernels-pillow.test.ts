import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { crc32, gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Axis } from '#reader/kernels/taps';
import { GuardedKernel, noise, type Picture } from './kernels-memory.js';

/** The cases that fixtures/kernels/make.py writes. */
interface PillowSource {
  readonly width: number;
  readonly height: number;
  readonly photo?: string;
  readonly noise?: number;
  readonly crc32: number;
  readonly cases: readonly PillowCase[];
}

interface PillowCase {
  readonly width: number;
  readonly height: number;
  readonly box: readonly [number, number, number, number] | null;
  readonly window: readonly [number, number, number, number] | null;
  readonly flip: boolean;
  readonly rows: readonly number[];
  readonly offset: number;
}

const fixtures = new URL('fixtures/kernels/', import.meta.url);
const sources: PillowSource[] = JSON.parse(readFileSync(new URL('pillow.json', fixtures), 'utf8'));
const expectedPixels = gunzipSync(readFileSync(new URL('pillow.bin.gz', fixtures)));
const sharp = createRequire(new URL('../packages/reader/package.json', import.meta.url))('sharp');

const kernel = new GuardedKernel({ sourceColumns: 65_000, sourceRows: 65_000, width: 4096, height: 28 }, 32 << 20);

test.each(sources.map((source) => [nameOf(source), source] as const))(
  '%s is resized within 2 levels of Pillow, a photo in 3 % of its values by 1',
  async (_, source) => {
    const picture = await pictureOf(source);
    expect(crc32(picture.pixels), 'the source that Pillow had').toBe(source.crc32);
    const differences = source.cases.map((resize) => differenceTo(resize, resized(picture, resize)));
    for (const { largest, mean, name } of differences) {
      expect(largest, name).toBeLessThanOrEqual(source.photo === undefined ? 2 : 1);
      expect(mean, name).toBeLessThanOrEqual(mostOnAverage(source));
    }
  },
);

/** Pillow 13 resizes the columns of tall pictures first. In pictures of a few pixels, few values are a large share. */
function mostOnAverage({ width, height, photo }: PillowSource): number {
  if (photo === undefined) return 0.3;
  return width < height || width * height < 100 ? 0.13 : 0.03;
}

function nameOf({ width, height, photo }: PillowSource): string {
  return `${photo ?? 'noise'} at ${width}x${height}`;
}

async function pictureOf({ width, height, photo, noise: seed = 0 }: PillowSource): Promise<Picture> {
  return photo ? photoOf(width, height, photo) : noise(width, height, seed);
}

/** The photo, starting at its middle, repeated in both directions. */
async function photoOf(width: number, height: number, file: string): Promise<Picture> {
  const path = fileURLToPath(new URL(`../examples/photos/${file}`, import.meta.url));
  const { data, info: photo } = await sharp(path).raw().toBuffer({ resolveWithObject: true });
  const pixels = new Uint8Array(width * height * 3);
  for (let row = 0; row < height; row++) {
    const photoRow = (row + (photo.height >> 1)) % photo.height;
    let column = 0;
    while (column < width) {
      const from = (column + (photo.width >> 1)) % photo.width;
      const run = data.subarray((photoRow * photo.width + from) * 3, (photoRow + 1) * photo.width * 3);
      const taken = run.subarray(0, (width - column) * 3);
      pixels.set(taken, (row * width + column) * 3);
      column += taken.length / 3;
    }
  }
  return { width, height, pixels };
}

function resized(picture: Picture, { width, height, box, window, flip }: PillowCase): Uint8Array {
  const [left, top, right, bottom] = box ?? [0, 0, picture.width, picture.height];
  const [firstColumn, firstRow, endColumn, endRow] = window ?? [0, 0, width, height];
  const x: Axis = {
    ...{ source: picture.width, boxStart: left, boxLength: right - left },
    ...{ output: width, first: firstColumn, count: endColumn - firstColumn, flip },
  };
  const y: Axis = {
    ...{ source: picture.height, boxStart: top, boxLength: bottom - top },
    ...{ output: height, first: firstRow, count: endRow - firstRow, flip: false },
  };
  return kernel.resize(picture, x, y, 'uint8-nhwc');
}

function differenceTo({ width, height, window, rows, offset }: PillowCase, pixels: Uint8Array) {
  const rowBytes = 3 * (window ? window[2] - window[0] : width);
  let largest = 0;
  let total = 0;
  rows.forEach((row, i) => {
    for (let at = 0; at < rowBytes; at++) {
      const difference = Math.abs(pixels[row * rowBytes + at]! - expectedPixels[offset + i * rowBytes + at]!);
      largest = Math.max(largest, difference);
      total += difference;
    }
  });
  const name = `to ${width}x${height}${window ? `, window ${window}` : ''}`;
  return { largest, mean: total / (rows.length * rowBytes), name };
}
