import { afterAll, expect, test } from 'vitest';
import { createChecker } from '#reader/codec/check';
import { chooseCodec, openCodecs } from '#reader/codec/select';
import { fixture, MAX_PIXELS, Workbench } from './codec-workbench.js';

const workbench = await Workbench.open();
const checker = await createChecker({ maxPixels: MAX_PIXELS });
afterAll(() => checker.close());

test('an image that claims too many pixels is rejected before memory is allocated for it', async () => {
  const bytes = fixture('odd-images/claims-65500x65500.jpg');
  const before = process.memoryUsage().rss;
  await expect(workbench.decode(bytes)).rejects.toThrow(/65500x65500.*limit/);
  await expect((async () => checker.check(bytes))()).rejects.toThrow(/65500x65500.*limit/);
  expect(process.memoryUsage().rss - before).toBeLessThan(50e6);
});

test('the given pixel limit applies', async () => {
  const strict = await createChecker({ maxPixels: 131 * 97 - 1 });
  const exact = await createChecker({ maxPixels: 131 * 97 });
  for (const name of ['codec/420.jpg', 'codec/rgb.png']) {
    const bytes = fixture(name);
    expect(await exact.check(bytes)).toEqual({ warnings: 0 });
  }
  await expect((async () => strict.check(fixture('codec/420.jpg')))()).rejects.toThrow(/131x97.*12706/);
  strict.close();
  exact.close();
});

test('a file with more scans than any real one is rejected as a decompression bomb', async () => {
  const bomb = withRepeatedScan(fixture('codec/progressive-420.jpg'), 501);
  const crop = { x: 0, y: 0, width: 8, height: 8 };
  await expect(workbench.decode(bomb, crop)).rejects.toThrow(/scans/);
  await expect((async () => checker.check(bomb))()).rejects.toThrow(/scans/);
});

test('after any error the next image is decoded normally', async () => {
  const good = fixture('codec/420.jpg');
  const { pixels } = await workbench.decode(good);
  const bad = [
    'claims-zero-width.jpg',
    'truncated-header.jpg',
    'truncated-half.jpg',
    'text-named.jpg',
    'truncated.png',
  ];
  for (const name of bad) {
    await expect(workbench.decode(fixture(`odd-images/${name}`)), name).rejects.toMatchObject({
      name: 'SampleDecodeError',
    });
    expect(Buffer.compare((await workbench.decode(good)).pixels, pixels), name).toBe(0);
  }
  for (let end = 0; end < 700; end += 9) {
    await workbench.decode(good.subarray(0, end)).catch(() => {});
    if (end % 90 === 0) expect(Buffer.compare((await workbench.decode(good)).pixels, pixels), `${end}`).toBe(0);
  }
});

test('a codec can be requested by name, and reports why it was chosen', async () => {
  for (const name of ['turbojpeg', 'sharp'] as const) {
    const { choice, jpeg } = await openCodecs({ maxPixels: MAX_PIXELS, codec: name });
    expect(choice.name).toBe(name);
    expect(choice.reason).toMatch(/as requested/);
    jpeg.close();
  }
  const forced = process.env.SHARDTOOL_CODEC;
  if (forced) expect((await chooseCodec()).name).toBe(forced);
});

test('if there is no TurboJPEG library for the platform, sharp decodes and the reason says so', async () => {
  const { platform, arch, env } = process;
  const forced = env.SHARDTOOL_CODEC;
  delete env.SHARDTOOL_CODEC;
  Object.defineProperty(process, 'platform', { value: 'darwin' });
  try {
    const { name, reason } = await chooseCodec();
    expect(name).toBe('sharp');
    expect(reason).toContain(`there is no shared TurboJPEG library for darwin-${arch}`);
  } finally {
    Object.defineProperty(process, 'platform', { value: platform });
    if (forced !== undefined) env.SHARDTOOL_CODEC = forced;
  }
});

test('an unknown name in SHARDTOOL_CODEC throws an error that lists the known ones', async () => {
  const forced = process.env.SHARDTOOL_CODEC;
  process.env.SHARDTOOL_CODEC = 'fastest';
  await expect(chooseCodec()).rejects.toThrow('SHARDTOOL_CODEC is "fastest". Set it to one of turbojpeg, sharp.');
  if (forced === undefined) delete process.env.SHARDTOOL_CODEC;
  else process.env.SHARDTOOL_CODEC = forced;
});

/** The same JPEG with its last scan `times` times. */
function withRepeatedScan(bytes: Uint8Array, times: number): Uint8Array {
  const jpeg = Buffer.from(bytes);
  const start = jpeg.lastIndexOf(Buffer.of(0xff, 0xda));
  const end = jpeg.lastIndexOf(Buffer.of(0xff, 0xd9));
  const scan = jpeg.subarray(start, end);
  return Buffer.concat([jpeg.subarray(0, start), ...Array.from({ length: times }, () => scan), jpeg.subarray(end)]);
}
