import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { indexPathOf, readShardIndex } from '@shardtool/format';
import { type PackOptions, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { digestsOf, jpeg, newFolder, PNG, samplesOf, tree } from './pack-workbench.js';

const FORMATS = ['tar', 'msgpack', 'lmdb'] as const;
const APPEND: PackOptions = { append: true, dedupe: true, workers: 1 };

/** Two shards of two samples. */
async function packed(options: PackOptions = {}): Promise<{ images: string; output: string }> {
  const images = tree({
    'cat/1.jpg': jpeg(1),
    'cat/1.json': '{"one": 1}',
    'cat/2.jpg': jpeg(2),
    'dog/3.jpg': jpeg(3),
    'dog/4.jpg': PNG,
  });
  const output = newFolder();
  await pack(images, output, { workers: 1, maxShardSamples: 2, shuffle: false, ...options });
  return { images, output };
}

function add(images: string, files: Readonly<Record<string, Uint8Array>>): void {
  for (const [name, bytes] of Object.entries(files)) writeFileSync(path.join(images, name), bytes);
}

function linesIn(output: string): unknown[] {
  const text = readFileSync(path.join(output, 'duplicates.jsonl'), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

test.each(FORMATS)(
  'new images that are equal to packed ones in shards of %s are skipped and listed',
  async (format) => {
    const { images, output } = await packed({ format });
    const before = digestsOf(output);
    add(images, {
      'cat/0.jpg': jpeg(3),
      'cat/5.jpg': jpeg(1),
      'cat/6.jpg': jpeg(6),
      'dog/7.png': PNG,
      'dog/8.jpg': jpeg(6),
      'dog/9.jpg': jpeg(3),
    });
    const report = await pack(images, output, { ...APPEND, workers: format === 'tar' ? 2 : 1 });
    expect(report).toMatchObject({ samples: 1, duplicates: 5, classConflicts: 2, isCommitted: true });
    expect(linesIn(output)).toEqual([
      { path: 'cat/0.jpg', standsFor: 'dog/3.jpg', shard: `000001.${format}`, class: 'cat', standsForClass: 'dog' },
      { path: 'cat/5.jpg', standsFor: 'cat/1.jpg', shard: `000000.${format}` },
      { path: 'dog/7.png', standsFor: 'dog/4.jpg', shard: `000001.${format}` },
      { path: 'dog/8.jpg', standsFor: 'cat/6.jpg', class: 'dog', standsForClass: 'cat' },
      { path: 'dog/9.jpg', standsFor: 'dog/3.jpg', shard: `000001.${format}` },
    ]);
    expect((await samplesOf(output)).map(({ source }) => source)).toEqual([
      ...['cat/1.jpg', 'cat/2.jpg', 'dog/3.jpg', 'dog/4.jpg', 'cat/6.jpg'],
    ]);
    const now = digestsOf(output);
    for (const file of Object.keys(before).filter((name) => name.startsWith('00')))
      expect(now[file]).toBe(before[file]);
    expect(await pack(images, output, APPEND)).toMatchObject({ samples: 0, duplicates: 5 });
    expect(linesIn(output)).toHaveLength(5);
  },
);

test('of several equal packed images the first is listed as the original of a new duplicate', async () => {
  const images = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(1), 'b/3.jpg': jpeg(1), 'b/4.jpg': jpeg(4) });
  const output = newFolder();
  await pack(images, output, { workers: 1, maxShardSamples: 1, shuffle: false });
  add(images, { 'b/5.jpg': jpeg(1) });
  await pack(images, output, APPEND);
  expect(linesIn(output)).toEqual([
    { path: 'b/5.jpg', standsFor: 'a/1.jpg', shard: '000000.tar', class: 'b', standsForClass: 'a' },
  ]);
});

test.each(FORMATS)('a packed sample of %s whose bytes have changed does not count as an original', async (format) => {
  const { images, output } = await packed({ format });
  const file = path.join(output, format === 'lmdb' ? '000000.lmdb/data.mdb' : `000000.${format}`);
  const { fields } = await readShardIndex(indexPathOf(file));
  const bytes = readFileSync(file);
  bytes[fields.get('jpg')!.offset[0]! + 5]! ^= 1;
  writeFileSync(file, bytes);
  add(images, { 'cat/5.jpg': jpeg(1), 'cat/6.jpg': jpeg(2) });
  expect(await pack(images, output, APPEND)).toMatchObject({ samples: 1, duplicates: 1 });
  expect(linesIn(output)).toEqual([{ path: 'cat/6.jpg', standsFor: 'cat/2.jpg', shard: `000000.${format}` }]);
});

test('an append that was stopped resumes with the duplicates that it had found', async () => {
  const { images, output } = await packed();
  add(images, {
    'cat/5.jpg': jpeg(1),
    'cat/6.jpg': Buffer.from('no image'),
    'cat/7.jpg': jpeg(7),
    'cat/8.jpg': jpeg(7),
  });
  await expect(pack(images, output, APPEND)).rejects.toThrow('cat/6.jpg');
  const report = await pack(images, output, { ...APPEND, onBad: 'quarantine', maxBad: 0.5 });
  expect(report).toMatchObject({ samples: 1, duplicates: 2, quarantined: 1, isCommitted: true });
  expect(linesIn(output)).toEqual([
    { path: 'cat/5.jpg', standsFor: 'cat/1.jpg', shard: '000000.tar' },
    { path: 'cat/8.jpg', standsFor: 'cat/7.jpg' },
  ]);
});

test('the command prints how many images were skipped, and whether only new images could be compared', async () => {
  const { images, output } = await packed();
  add(images, { 'cat/5.jpg': jpeg(1), 'cat/6.jpg': jpeg(6), 'dog/7.jpg': jpeg(6) });
  const { code, stdout } = await shardtool('pack', images, output, '--append', '--dedupe', '--workers', '1');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Added 1 file /);
  expect(stdout).toContain('2 images have the same bytes as others and were skipped');
  expect(stdout).not.toContain('each other only');
  const again = await shardtool('pack', images, output, '--append', '--dedupe', '--workers', '1');
  expect(again.stdout).toMatch(/^Added 0 files .*\n {2}2 images have the same bytes/);

  const small = await packed({ resize: 8 });
  add(small.images, { 'cat/5.jpg': jpeg(1), 'cat/6.jpg': jpeg(6), 'dog/7.jpg': jpeg(6) });
  const resized = await shardtool(
    'pack',
    small.images,
    small.output,
    '--append',
    '--dedupe',
    '--resize',
    '8',
    '--workers',
    '1',
  );
  expect(resized.stdout).toMatch(/^Added 2 files /);
  expect(resized.stdout).toContain('1 image has the same bytes as another and was skipped');
  expect(resized.stdout).toContain(
    'new images were only compared with each other, because packing changes their bytes',
  );
});
