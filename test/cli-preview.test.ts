import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect, test } from 'vitest';
import { shardtool } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const sharp = createRequire(new URL('../packages/reader/package.json', import.meta.url))('sharp');
const shards = await packedPhotos();
const folder = emptyFolder();

/** The pixels of a part of a PNG. */
function pixelsOf(file: string, left: number, top: number, width: number, height: number): Promise<Buffer> {
  return sharp(file).extract({ left, top, width, height }).raw().toBuffer();
}

/** The mean of each channel of a part of a PNG. */
async function meanOf(file: string, left: number, top: number, size: number): Promise<number[]> {
  const pixels = await pixelsOf(file, left, top, size, size);
  return [0, 1, 2].map((channel) => {
    const values = pixels.filter((_, at) => at % 3 === channel);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  });
}

test('preview writes a grid of transformed images, whatever values the transform makes', async () => {
  const crop = [
    { name: 'resize', size: [64, 64] },
    { name: 'randomRotation', degrees: 10 },
  ];
  const values = [
    { name: 'toDtype', dtype: 'float32', scale: true },
    { name: 'normalize', mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4] },
  ];
  const lists = {
    bytes: crop,
    floats: [...crop, ...values],
    halves: [...crop, ...values, { name: 'toDtype', dtype: 'float16' }],
  };
  const means: number[][] = [];
  for (const [name, list] of Object.entries(lists)) {
    const transform = path.join(folder, `${name}.json`);
    const output = path.join(folder, `${name}.png`);
    writeFileSync(transform, JSON.stringify(list));
    const { code, stdout, stderr } = await shardtool(
      'preview',
      shards,
      '--transform',
      transform,
      '--grid',
      '4x2',
      '--output',
      output,
    );
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toBe(`Wrote ${output}: 8 images of 64x64 pixels.\n`);
    const { width, height } = await sharp(output).metadata();
    expect({ width, height }).toEqual({ width: 6 + 4 * 70, height: 6 + 2 * (64 + 14 + 12) });
    means.push(await meanOf(output, 6, 6, 64));
  }
  for (const mean of means) {
    for (const channel of [0, 1, 2]) expect(Math.abs(mean[channel]! - means[0]![channel]!)).toBeLessThan(0.5);
  }
});

test('every image has its class below it', async () => {
  const output = path.join(folder, 'classes.png');
  await shardtool('preview', shards, '--transform', 'eval224', '--grid', '2x1', '--output', output);
  const label = await pixelsOf(output, 6, 6 + 224, 224, 20);
  expect(new Set(label)).toEqual(new Set([24, 230]));
});

test('what is not right is said in a sentence', async () => {
  const output = path.join(folder, 'none.png');
  const grid = await shardtool('preview', shards, '--grid', '0x3', '--output', output);
  expect(grid).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--grid takes columns x rows, as 8x8, and not "0x3"'),
  });
  const missing = await shardtool('preview', shards, '--transform', 'nowhere.json', '--output', output);
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('nowhere.json cannot be read') });
  const file = path.join(folder, 'wrong.json');
  writeFileSync(file, '[{"name":"resise"}]');
  const wrong = await shardtool('preview', shards, '--transform', file, '--output', output);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain('Step 1 of the transform');
  expect(() => readFileSync(output)).toThrow();
});
