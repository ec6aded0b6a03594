import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeNpyHeader, encodeNpyImage } from '@shardtool/format';
import { emptyFolder } from './datasets.js';
import { archive, entry } from './tar-craft.js';

/** A box, [x, y, width, height], filled with red of its label, on black. */
export interface Shape {
  readonly bbox: readonly [number, number, number, number];
  readonly label: number;
}

export const WIDTH = 64;
export const HEIGHT = 48;
/** The red value that stands for a label. */
export const redOf = (label: number) => 60 + label * 20;

/** The shapes on image `i`: none on every fifth image, and no two of them touch. */
export function shapesOf(i: number): Shape[] {
  if (i % 5 === 4) return [];
  return Array.from({ length: 1 + (i % 4) }, (_, n) => ({
    bbox: [2 + n * 15 + (i % 3), 3 + ((i * 7 + n * 5) % 20), 10, 12 + ((i + n) % 9)],
    label: (i + n) % 8,
  }));
}

function pixelsOf(shapes: readonly Shape[]): Uint8Array {
  const pixels = new Uint8Array(WIDTH * HEIGHT * 3);
  for (const { bbox, label } of shapes) {
    const [x, y, width, height] = bbox;
    for (let row = y; row < y + height; row++) {
      for (let column = x; column < x + width; column++) pixels[(row * WIDTH + column) * 3] = redOf(label);
    }
  }
  return pixels;
}

/** An array of float32 in the format of NumPy. */
export function npyFloats(values: readonly number[], shape: readonly number[]): Buffer {
  return Buffer.concat([encodeNpyHeader('<f4', shape), Buffer.from(Float32Array.from(values).buffer)]);
}

/** A tar of such images with their objects as JSON (`objects`, and as parallel lists) and as `box.npy`, corners as fractions. */
export function annotatedTar(samples: number): string {
  const file = path.join(emptyFolder(), 'annotated.tar');
  const parts = Array.from({ length: samples }, (_, i) => {
    const shapes = shapesOf(i);
    const corners = shapes.flatMap(({ bbox: [x, y, width, height] }) => [
      x / WIDTH,
      y / HEIGHT,
      (x + width) / WIDTH,
      (y + height) / HEIGHT,
    ]);
    const objects = shapes.map(({ bbox: [x, y, width, height], label }) => ({
      bbox: [x, y, width, height],
      label,
      middle: [[x + width / 2 - 0.5, y + height / 2 - 0.5, 2]],
      segmentation: [[x, y, x + width, y, x + width, y + height, x, y + height]],
    }));
    const json = { objects, boxes: objects.map(({ bbox }) => bbox), labels: objects.map(({ label }) => label) };
    const key = String(i).padStart(3, '0');
    return [
      entry({ name: `${key}.npy` }, Buffer.from(encodeNpyImage(pixelsOf(shapes), WIDTH, HEIGHT))),
      entry({ name: `${key}.json` }, Buffer.from(JSON.stringify(json))),
      entry({ name: `${key}.box.npy` }, npyFloats(corners, [shapes.length, 4])),
    ];
  });
  writeFileSync(file, archive(...parts.flat()));
  return file;
}
