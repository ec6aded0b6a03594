import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createChecker } from './check.js';
import { codecReason } from './decode-error.js';

test.each([
  ['VipsJpeg: premature end of JPEG image', 'premature end of JPEG image'],
  ['vipspng: libpng read error', 'its data are damaged or truncated'],
  ['Input buffer has corrupt header: webp: unable to parse image', 'its header is damaged: unable to parse image'],
  ['Input buffer has corrupt header: gifload_buffer: Invalid frame data', 'its header is damaged: Invalid frame data'],
  [
    'Input buffer has corrupt header: VipsJpeg: premature end of JPEG image\nVipsJpeg: Invalid JPEG file structure: missing SOS marker\nVipsJpeg: premature end of JPEG image',
    'its header is damaged: premature end of JPEG image; Invalid JPEG file structure: missing SOS marker',
  ],
  ['Warning treated as error due to failOn setting\niCCP: CRC error\niCCP: CRC error\n', 'iCCP: CRC error'],
  [
    'tiff2vips: Read error at scanline 0; got 5355 bytes, expected 6240',
    'Read error at scanline 0; got 5355 bytes, expected 6240',
  ],
  ['Unknown error', 'the decoder does not give a reason'],
  ['', 'the decoder does not give a reason'],
  ['Input buffer contains unsupported image format', 'it is not an image, or its format is not supported'],
])('the libvips message %j becomes one plain line', (message, reason) => {
  expect(codecReason(new Error(message))).toBe(reason);
});

test('messages about damaged images are one line and do not contain names of libvips functions', async () => {
  const checker = await createChecker({ maxPixels: 1e8 });
  const folder = 'test/fixtures/odd-images';
  let refused = 0;
  for (const name of readdirSync(folder).filter((file) => /\.(jpg|png|gif|webp|tif)$/.test(file))) {
    const whole = readFileSync(path.join(folder, name));
    const changed = whole.map((byte, at) => (at > 60 && at % 97 === 0 ? byte ^ 0x55 : byte));
    for (const bytes of [whole.subarray(0, whole.length >> 1), whole.subarray(0, whole.length - 20), changed]) {
      try {
        await checker.check(bytes);
      } catch (error) {
        refused++;
        expect((error as Error).message, name).not.toMatch(/vips|_buffer|\\n|\n|failOn/i);
      }
    }
  }
  checker.close();
  expect(refused).toBeGreaterThan(20);
});
