import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect, test } from 'vitest';
import { annotatedTar, shapesOf } from './annotated-tar.js';
import { shardtool } from './cli-here.js';
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

test('preview writes a grid of transformed images for any values that the transform produces', async () => {
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
    expect({ width, height }).toEqual({ width: 6 + 4 * 70, height: 6 + 2 * (64 + 20 + 12) });
    means.push(await meanOf(output, 6, 6, 64));
  }
  for (const mean of means) {
    for (const channel of [0, 1, 2]) expect(Math.abs(mean[channel]! - means[0]![channel]!)).toBeLessThan(0.5);
  }
});

test('every image has its class below it, or the classes are printed if the system has no font', async () => {
  const output = path.join(folder, 'classes.png');
  const { stdout } = await shardtool('preview', shards, '--transform', 'eval224', '--grid', '2x1', '--output', output);
  const label = await pixelsOf(output, 6, 6 + 224, 224, 20);
  const isPrinted = /^There is no font on this system; the classes are: \w+, \w+$/m.test(stdout);
  expect([Math.min(...label), Math.max(...label) > 150]).toEqual([24, !isPrinted]);
});

test('preview skips and counts bad samples, and writes the file of --output', async () => {
  const odd = path.join(emptyFolder(), 'shards');
  await shardtool('pack', 'test/fixtures/odd-images', odd, '--include', 'truncated.png', '--include', '*-444.jpg');
  for (const ending of ['jpg', 'webp']) {
    const output = path.join(folder, `odd.${ending}`);
    const { code, stdout } = await shardtool(
      'preview',
      odd,
      '--transform',
      'eval224',
      '--grid',
      '9x9',
      '--output',
      output,
    );
    expect(stdout).toMatch(
      /^Wrote .*: \d+ images? of 224x224 pixels\.\n1 bad sample on the way:\n {2}truncated: .+\n$/,
    );
    expect([code, (await sharp(output).metadata()).format]).toEqual([0, ending === 'jpg' ? 'jpeg' : ending]);
  }
});

test('masks are drawn next to their images', async () => {
  const source = emptyFolder();
  for (const name of ['a', 'b']) {
    const image = { width: 64, height: 64, channels: 3, background: '#ffffff' };
    await sharp({ create: image })
      .jpeg()
      .toFile(path.join(source, `${name}.jpg`));
    const gray = { raw: { width: 64, height: 64, channels: 1 } };
    await sharp(Buffer.alloc(64 * 64, 1), gray)
      .toColourspace('b-w')
      .png()
      .toFile(path.join(source, `${name}.seg.png`));
  }
  const masked = path.join(emptyFolder(), 'shards');
  await shardtool('pack', source, masked, '--fields', 'seg.png');
  const list = path.join(folder, 'small.json');
  writeFileSync(list, '[{"name":"resize","size":[32,32]}]');
  const output = path.join(folder, 'masks.png');
  const flags = ['--transform', list, '--grid', '2x1', '--masks', 'seg.png', '--output', output];
  const { code, stderr } = await shardtool('preview', masked, ...flags);
  expect(code).toBe(0);
  // These samples have no classes.
  expect(stderr).toContain('SHARDTOOL_NO_CLASS');
  expect((await sharp(output).metadata()).width).toBe(6 + 2 * (2 * 32 + 6));
  expect(await meanOf(output, 6, 6, 32)).toEqual([255, 255, 255]);
  // The colour of the value 1.
  const [red, green, blue] = await meanOf(output, 6 + 32, 6, 32);
  expect([red! < 5, green! > 250, blue! > 0]).toEqual([true, true, true]);
});

test('invalid input is rejected with a clear message', async () => {
  const output = path.join(folder, 'none.png');
  const grid = await shardtool('preview', shards, '--grid', '0x3', '--output', output);
  expect(grid).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--grid takes columns x rows, such as 8x8, not "0x3"'),
  });
  const missing = await shardtool('preview', shards, '--transform', 'nowhere.json', '--output', output);
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('nowhere.json cannot be read') });
  const file = path.join(folder, 'wrong.json');
  writeFileSync(file, '[{"name":"resise"}]');
  const wrong = await shardtool('preview', shards, '--transform', file, '--output', output);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain('Step 1 of the transform');
  expect(existsSync(output)).toBe(false);
  const nowhere = await shardtool('preview', shards, '--output', path.join(folder, 'none/x.png'));
  expect(nowhere).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/The folder .*none of --output does not exist/),
  });
  const kind = await shardtool('preview', shards, '--output', 'x.gif');
  expect(kind).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--output takes a file with the extension .png'),
  });
});

test('with aspect buckets preview draws one row per size', async () => {
  const output = path.join(folder, 'sizes.png');
  const { stdout, code } = await shardtool(
    'preview',
    shards,
    '--aspect-buckets',
    '256x256:64:2',
    '--grid',
    '2x4',
    '--output',
    output,
  );
  expect(code).toBe(0);
  expect(stdout).toContain('6 images of 192x320, 256x256, 320x192 pixels');
  const { width, height } = await sharp(output).metadata();
  // Two of the widest next to each other, and one row below the other, with gaps between them.
  expect(width).toBeGreaterThan(2 * 320);
  expect(width).toBeLessThan(2 * 320 + 100);
  expect(height).toBeGreaterThan(320 + 256 + 192);
  expect(height).toBeLessThan(320 + 256 + 192 + 200);
});

test('preview draws boxes where the transform has moved them', async () => {
  const tar = annotatedTar(6);
  const [annotations, transform] = [path.join(folder, 'annotations.json'), path.join(folder, 'flip.json')];
  writeFileSync(annotations, JSON.stringify({ boxes: { field: 'json', path: 'boxes' }, labels: { field: 'box.npy' } }));
  writeFileSync(transform, JSON.stringify([{ name: 'randomHorizontalFlip', p: 1 }]));
  const output = path.join(folder, 'boxes.png');
  const common = ['preview', tar, '--transform', transform, '--grid', '3x2', '--output', output];
  const wrong = await shardtool(...common, '--annotations', annotations);
  expect(wrong.stdout).toMatch(/1 image of 64x48 pixels.*\n5 bad samples(.*\n)*.*is not a class number/);
  writeFileSync(annotations, JSON.stringify({ boxes: { field: 'json', path: 'boxes' } }));
  expect((await shardtool(...common, '--annotations', annotations)).code).toBe(0);
  const drawn = await pixelsOf(output, 0, 0, 3 * 70, 2 * 80);
  await shardtool(...common);
  const plain = await pixelsOf(output, 0, 0, 3 * 70, 2 * 80);
  let edges = 0;
  for (let at = 0; at < drawn.length; at += 3) {
    if (drawn.compare(plain, at, at + 3, at, at + 3) === 0) continue;
    edges++;
    // Below an edge there is a shape: black has no red in it.
    expect(plain[at]).toBeGreaterThan(50);
  }
  const shapes = Array.from({ length: 6 }, (_, i) => shapesOf(i)).flat();
  expect(edges).toBe(shapes.reduce((sum, { bbox: [, , width, height] }) => sum + 2 * (width + height) - 4, 0));
  const missing = await shardtool(...common, '--annotations', 'nowhere.json');
  expect(missing.stderr).toMatch(/--annotations takes a JSON file, but nowhere.json cannot be read as JSON/);
});
