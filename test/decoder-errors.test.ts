import { expect, test } from 'vitest';
import { fixture } from './codec-workbench.js';
import { GuardedDecoder, sample } from './decoder-workbench.js';

const photo = fixture('codec/420.jpg');
const bad = { name: 'SampleDecodeError' };

test('an image that does not fit the scratch memory throws an error that says what to change', async () => {
  const decoder = await GuardedDecoder.open([{ name: 'centerCrop', size: 2000 }], {
    scratch: { offset: 0, bytes: 10e6 },
  });
  expect(await decoder.decode(photo)).toHaveLength(2000 * 2000 * 3);
  const list = await GuardedDecoder.open(
    [
      { name: 'resize', size: [2000, 2000] },
      { name: 'centerCrop', size: 3000 },
    ],
    {
      scratch: { offset: 0, bytes: 10e6 },
    },
  );
  await expect(list.decode(photo)).rejects.toThrow(/fewer workers/);
  await expect(list.decode(photo)).rejects.toMatchObject(bad);
  await expect(GuardedDecoder.open([], { scratch: { offset: 0, bytes: 1e6 } })).rejects.toThrow(
    /1000000 bytes of scratch/,
  );
});

test('damaged images throw errors, oddities are counted, and later images are unaffected', async () => {
  const decoder = await GuardedDecoder.open([{ name: 'resize', size: [20, 30] }]);
  const expected = await decoder.decode(photo);
  for (const name of ['truncated-half.jpg', 'truncated.png', 'text-named.jpg', 'empty.jpg', 'claims-65500x65500.jpg']) {
    await expect(decoder.decode(fixture(`odd-images/${name}`)), name).rejects.toMatchObject(bad);
    expect(Buffer.compare(await decoder.decode(photo), expected), name).toBe(0);
  }
  await decoder.decode(fixture('odd-images/no-end-marker.jpg'));
  expect(decoder.decoder.takeWarnings()).toBe(1);
  expect(decoder.decoder.takeWarnings()).toBe(0);
});

test('the error for an unsupported kind of image names it', async () => {
  const decoder = await GuardedDecoder.open([]);
  await expect(decoder.decodeToArray(fixture('image-headers/plain.jp2'))).rejects.toThrow(/JPEG 2000/);
});

test('a transform that makes an image too long to resize throws an error that says how to change it', async () => {
  const decoder = await GuardedDecoder.open([{ name: 'resize', size: 224 }]);
  await expect(decoder.decodeToArray(fixture('odd-images/strip-3x2000.jpg'))).rejects.toThrow(/224x149333.*maxSize/);
});

test('a long strip is resized and cropped to 224 pixels', async () => {
  for (const transform of ['eval224', 'train224'] as const) {
    const decoder = await GuardedDecoder.open(transform);
    for (const name of ['strip-3x2000.jpg', 'one-pixel.jpg', 'odd-size-317x239.jpg']) {
      expect(await decoder.decode(fixture(`odd-images/${name}`), sample())).toHaveLength(224 * 224 * 3);
    }
  }
});
