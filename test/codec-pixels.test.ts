import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { probeImage } from '@shardtool/format';
import { expect, test } from 'vitest';
import { turnedSize, turnPixels } from '#reader/codec/orientation';
import { difference, fixture, Workbench, wholeOf } from './codec-workbench.js';

interface Expected {
  readonly width: number;
  readonly height: number;
  readonly sha256: string;
}

const expected = JSON.parse(readFileSync(new URL('./fixtures/codec/expected.json', import.meta.url), 'utf8')) as {
  readonly images: Readonly<Record<string, Expected>>;
};
/** The pixels that Pillow decodes from the images in fixtures/pillow, as stored and rotated as their metadata say. */
const ofPillow = Object.entries(
  JSON.parse(readFileSync(new URL('./fixtures/pillow/expected.json', import.meta.url), 'utf8')) as Readonly<
    Record<string, { readonly stored: Expected; readonly upright: Expected }>
  >,
);
const workbench = await Workbench.open();
const { other } = workbench.codecs;

test.each(Object.entries(expected.images))('%s has the same pixels as with Pillow', async (name, pillow) => {
  const bytes = fixture(`codec/${name}`);
  const picture = await workbench.decode(bytes);
  expect(picture).toMatchObject({ width: pillow.width, height: pillow.height, warnings: 0 });
  other.header(bytes);
  const bySharp = await workbench.decodeWith(other, bytes, wholeOf(picture), 1);
  expect(sha256(bySharp.pixels)).toBe(pillow.sha256);
  expect(sha256(picture.pixels)).toBe(pillow.sha256);
});

test.each(ofPillow)('%s has the same pixels as with Pillow, stored and upright', async (name, { stored, upright }) => {
  const bytes = fixture(`pillow/${name}`);
  const picture = await workbench.decode(bytes);
  const { orientation } = probeImage(bytes);
  const size = turnedSize(picture, orientation);
  const target = picture.pixels.length;
  const memory = new Uint8Array(2 * target);
  memory.set(picture.pixels);
  turnPixels(memory, { offset: 0, stride: picture.width * 3, warnings: 0 }, size, orientation, target);
  const turned = { ...size, sha256: sha256(memory.subarray(target)) };
  expect(turned).toEqual(upright);
  // Pillow rotates a TIFF when it opens it.
  const asStored = { width: picture.width, height: picture.height, sha256: sha256(picture.pixels) };
  if (!name.endsWith('.tif')) expect(asStored).toEqual(stored);
});

test('an AVIF is decoded to its original pixels, except for the rounding of its colours', async () => {
  const [avif, png] = await Promise.all(['rgb.avif', 'rgb.png'].map(async (name) => fixture(`codec/${name}`)));
  const { pixels } = await workbench.decode(avif!);
  expect(difference(pixels, (await workbench.decode(png!)).pixels).largest).toBeLessThanOrEqual(4);
});

test('a JPEG with 12 bits per channel is rejected, and the next image is decoded', async () => {
  await expect(workbench.decode(fixture('codec/twelve-bit.jpg'))).rejects.toMatchObject({ name: 'SampleDecodeError' });
  expect((await workbench.decode(fixture('codec/420.jpg'))).width).toBe(131);
});

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
