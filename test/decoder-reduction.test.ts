import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { StepInput } from '#reader/transform/transform';
import { difference, fixture } from './codec-workbench.js';
import { GuardedDecoder, sample } from './decoder-workbench.js';

const photos = ['cat/cat_000', 'coffee/coffee_003', 'rocket/rocket_005'].map((name) =>
  readFileSync(new URL(`../examples/photos/${name}.jpg`, import.meta.url)),
);

/** Sizes at which photos of about 500 x 375 pixels are decoded at 1/2, 1/4 and 1/8; blocks at their edges are not full. */
test.each([
  { size: 60, most: 8, onAverage: 0.4 },
  { size: 30, most: 10, onAverage: 0.5 },
  { size: 15, most: 16, onAverage: 1 },
])('a photo that is decoded at a reduced size looks the same at $size pixels', async ({ size, most, onAverage }) => {
  const lists: readonly (readonly StepInput[])[] = [
    [{ name: 'resize', size: [size, size] }],
    [{ name: 'randomResizedCrop', size, scale: [0.9, 1] }, { name: 'randomHorizontalFlip' }],
  ];
  for (const list of lists) {
    const decoder = await GuardedDecoder.open(list);
    // sharp never reduces here: the kernel resizes the whole image.
    const full = await GuardedDecoder.open(list, { codec: 'sharp' });
    for (const [number, photo] of photos.entries()) {
      const identity = sample({ number });
      const { largest, mean } = difference(await decoder.decode(photo, identity), await full.decode(photo, identity));
      expect(mean, `mean of photo ${number}`).toBeLessThan(onAverage);
      expect(largest, `photo ${number}`).toBeLessThanOrEqual(most);
    }
  }
});

/** Largest and mean difference from the resized full decode, for a list of photos. */
async function differenceOf(mode: 'exact' | 'scaled' | 'fast', size: number) {
  const list: readonly StepInput[] = [{ name: 'resize', size: [size, size] }];
  const decoder = await GuardedDecoder.open(list, { decode: mode });
  const full = await GuardedDecoder.open(list, { codec: 'sharp' });
  let [largest, sum] = [0, 0];
  for (const [number, photo] of photos.entries()) {
    const identity = sample({ number });
    const found = difference(await decoder.decode(photo, identity), await full.decode(photo, identity));
    largest = Math.max(largest, found.largest);
    sum += found.mean;
  }
  return { largest, mean: sum / photos.length };
}

/** Only libjpeg-turbo decodes at a reduced size. */
const shrinks = (process.env.SHARDTOOL_CODEC ?? 'turbojpeg') === 'turbojpeg';

test.skipIf(!shrinks)('exact decodes full images, scaled may reduce them, and fast reduces them further', async () => {
  for (const size of [150, 60, 30]) {
    const [exact, scaled, fast] = [
      await differenceOf('exact', size),
      await differenceOf('scaled', size),
      await differenceOf('fast', size),
    ];
    expect(exact, `${size}`).toEqual({ largest: 0, mean: 0 });
    expect(scaled.mean, `${size}`).toBeLessThan(fast.mean);
    expect(fast.mean, `${size}`).toBeLessThan(4);
  }
});

test('a lossless JPEG, which cannot be decoded at a reduced size, is resized from its full size', async () => {
  const list: readonly StepInput[] = [{ name: 'resize', size: [5, 6] }];
  const decoder = await GuardedDecoder.open(list);
  const full = await GuardedDecoder.open(list, { codec: 'sharp' });
  const image = fixture('codec/lossless.jpg');
  expect(difference(await decoder.decode(image), await full.decode(image)).largest).toBe(0);
});
