import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeNpyImage } from '@shardtool/format';
import { emptyFolder } from './datasets.js';
import { archive, entry } from './tar-craft.js';

/** Number of images of each sample: zero, some, and one with more than ten, whose names are not in alphabetical order. */
export const countOf = (sample: number): number => (sample === 5 ? 12 : (sample * 7) % 5);

/** The one colour of an image. */
export const colourOf = (sample: number, image: number): [number, number, number] => [sample, image, 200];

/** An uncompressed image with one colour, whose size depends on the sample and on its number. */
export function plainImage(sample: number, image: number): Buffer {
  const [width, height] = [20 + image, 30 - (sample % 7)];
  const pixels = new Uint8Array(width * height * 3);
  for (let at = 0; at < width * height; at++) pixels.set(colourOf(sample, image), at * 3);
  return Buffer.from(encodeNpyImage(pixels, width, height));
}

/** A tar of samples with `img.0.npy`, `img.1.npy` and so on, and a text. `change` replaces the bytes of some images. */
export function raggedTar(
  samples: number,
  change: (bytes: Buffer, sample: number, image: number) => Buffer = (bytes) => bytes,
): string {
  const entries = Array.from({ length: samples }, (_, i) => [
    entry({ name: `s${i}.cls` }, String(i % 3)),
    ...Array.from({ length: countOf(i) }, (_, k) =>
      entry({ name: `s${i}.img.${k}.npy` }, change(plainImage(i, k), i, k)),
    ),
    entry({ name: `s${i}.txt` }, `text ${i}`),
  ]);
  const file = path.join(emptyFolder(), 'ragged.tar');
  writeFileSync(file, archive(...entries.flat()));
  return file;
}
