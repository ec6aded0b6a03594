import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { StepInput } from '#reader/transform/transform';
import { cut, difference, fixture } from './codec-workbench.js';
import { GuardedDecoder, sample } from './decoder-workbench.js';

const ORIENTATIONS = [1, 2, 3, 4, 5, 6, 7, 8];
const photo = fixture('codec/420.jpg');
const pillow = (
  JSON.parse(readFileSync(new URL('./fixtures/codec/expected.json', import.meta.url), 'utf8')) as {
    readonly 'orientations of 420.jpg': Readonly<Record<string, { width: number; height: number; sha256: string }>>;
  }
)['orientations of 420.jpg'];

const turning = await GuardedDecoder.open([], { applyExifOrientation: true });

test.each(ORIENTATIONS)('orientation %d is applied as by Pillow', async (orientation) => {
  const image = await turning.decodeToArray(photo, sample({ orientation }));
  const { width, height, sha256 } = pillow[orientation]!;
  expect({ width: image.width, height: image.height }).toEqual({ width, height });
  expect(createHash('sha256').update(image.pixels).digest('hex')).toBe(sha256);
});

test.each(ORIENTATIONS)('a crop is taken from the rotated image, orientation %d', async (orientation) => {
  const crop: StepInput = { name: 'randomCrop', size: [40, 30] };
  const decoder = await GuardedDecoder.open([crop], { applyExifOrientation: true });
  const all = await turning.decodeToArray(photo, sample({ orientation }));
  const image = await decoder.decodeToArray(photo, sample({ orientation, number: 5 }));
  const places = [];
  for (let y = 0; y + 40 <= all.height; y++) {
    for (let x = 0; x + 30 <= all.width; x++) {
      if (isAt(all, image, x, y)) places.push([x, y]);
    }
  }
  expect(places).toHaveLength(1);
});

test('orientations are ignored unless requested', async () => {
  const decoder = await GuardedDecoder.open([]);
  const upright = await decoder.decodeToArray(photo);
  const ignored = await decoder.decodeToArray(photo, sample({ orientation: 6 }));
  expect(Buffer.compare(ignored.pixels, upright.pixels)).toBe(0);
});

test('a rotated image is resized like an upright one', async () => {
  const steps: readonly StepInput[] = [{ name: 'resize', size: [50, 60] }];
  const turned = await GuardedDecoder.open(steps, { applyExifOrientation: true });
  const mirrored = await turned.decode(photo, sample({ orientation: 2 }));
  const flipped = await GuardedDecoder.open([...steps, { name: 'randomHorizontalFlip', p: 1 }]);
  expect(difference(mirrored, await flipped.decode(photo)).largest).toBeLessThanOrEqual(1);
});

interface Image {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

/** Whether `part` is at (x, y) of the image; most positions differ in the first row already. */
function isAt(all: Image, part: Image, x: number, y: number): boolean {
  const row = { x, y, width: part.width, height: 1 };
  if (Buffer.compare(cut({ ...all, warnings: 0 }, row), part.pixels.subarray(0, part.width * 3)) !== 0) return false;
  return Buffer.compare(cut({ ...all, warnings: 0 }, { ...row, height: part.height }), part.pixels) === 0;
}
