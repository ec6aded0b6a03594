import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import { encodeNpyHeader, encodeNpyImage } from '@shardtool/format';
import { emptyFolder } from './datasets.js';
import { archive, entry } from './tar-craft.js';

/** Side of each image and mask in pixels. */
export const [WIDTH, HEIGHT] = [40, 30];

/** A palette PNG with one byte per pixel, as in segmentation masks. */
export function palettePng(values: Uint8Array, width: number, height: number): Buffer {
  const chunk = (type: string, content: Buffer) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(content.length);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, content, Buffer.alloc(4)]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8);
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) rows.set(values.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const parts = [
    chunk('IHDR', head),
    chunk('PLTE', Buffer.alloc(768)),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ];
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...parts]);
}

/** Pixel (x, y) of sample i: its mask has the value that its image has as red, so that the two can be compared. */
const valueAt = (i: number, x: number, y: number) => ((x >> 3) + 6 * (y >> 3) + i) % 20;

/** A tar of uncompressed images with two kinds of masks, a second image and an array. */
export function maskedTar(samples: number): string {
  const entries = Array.from({ length: samples }, (_, i) => {
    const pixels = new Uint8Array(WIDTH * HEIGHT * 3);
    const mask = new Uint8Array(WIDTH * HEIGHT);
    for (let at = 0; at < mask.length; at++) {
      const value = valueAt(i, at % WIDTH, Math.floor(at / WIDTH));
      mask[at] = value;
      pixels.set([value * 10, i, 255 - value], at * 3);
    }
    const inverted = pixels.map((value) => 255 - value);
    return [
      entry({ name: `s${i}.npy` }, Buffer.from(encodeNpyImage(pixels, WIDTH, HEIGHT))),
      entry({ name: `s${i}.depth.npy` }, Buffer.from(encodeNpyImage(inverted, WIDTH, HEIGHT))),
      entry({ name: `s${i}.seg.png` }, palettePng(mask, WIDTH, HEIGHT)),
      entry({ name: `s${i}.mask.npy` }, Buffer.concat([encodeNpyHeader('|u1', [HEIGHT, WIDTH]), mask])),
      entry(
        { name: `s${i}.box.npy` },
        Buffer.concat([encodeNpyHeader('<f4', [2]), Buffer.from(Float32Array.of(i, 0.5).buffer)]),
      ),
      entry({ name: `s${i}.cls` }, Buffer.from(String(i % 3))),
    ];
  });
  const file = path.join(emptyFolder(), 'masked.tar');
  writeFileSync(file, archive(...entries.flat()));
  return file;
}
