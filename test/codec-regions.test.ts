import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Rect, Reduction } from '#reader/codec/codec';
import { cut, dice, fixture, type Picture, Workbench } from './codec-workbench.js';

const workbench = await Workbench.open();
const regions = workbench.codecs.choice.name === 'turbojpeg';
// Codecs without regions decode the whole image each time, so fewer crops are enough for them.
const crops = regions ? 60 : 6;
const images = readdirSync(new URL('./fixtures/codec/', import.meta.url)).filter(
  (name) => name.endsWith('.jpg') && name !== 'twelve-bit.jpg',
);

test.each(images)('any region of %s has the pixels of a full decode, at every reduction', async (name) => {
  const bytes = fixture(`codec/${name}`);
  const random = dice(name.length);
  const reductions: readonly Reduction[] = workbench.isReducible(bytes) ? [1, 2, 4, 8] : [1];
  for (const reduction of reductions) {
    const whole = await workbench.decode(bytes, undefined, reduction);
    for (let i = 0; i < crops; i++) {
      const crop = someRect(whole, random);
      const region = await workbench.decode(bytes, crop, reduction);
      if (Buffer.compare(region.pixels, cut(whole, crop)) !== 0) {
        expect.fail(`differs in ${JSON.stringify(crop)} of ${whole.width}x${whole.height} at 1/${reduction}`);
      }
    }
  }
});

test('every single pixel of a small image has the same value as in a full decode', async () => {
  const bytes = fixture('codec/17x33.jpg');
  const whole = await workbench.decode(bytes);
  for (let y = 0; y < 33; y += regions ? 1 : 7) {
    for (let x = 0; x < 17; x += regions ? 1 : 5) {
      const crop = { x, y, width: 1, height: 1 };
      expect((await workbench.decode(bytes, crop)).pixels, `${x}, ${y}`).toEqual(cut(whole, crop));
    }
  }
});

/** A rectangle inside, equally often small and large, and equally often at an edge and not. */
function someRect({ width, height }: Picture, random: (n: number) => number): Rect {
  const [x, w] = someStretch(width, random);
  const [y, h] = someStretch(height, random);
  return { x, y, width: w, height: h };
}

function someStretch(size: number, random: (n: number) => number): [start: number, length: number] {
  const length = 1 + random(random(2) === 0 ? size : Math.min(size, 4));
  const room = size - length;
  const place = random(4);
  return [place === 0 ? 0 : place === 1 ? room : random(room + 1), length];
}
