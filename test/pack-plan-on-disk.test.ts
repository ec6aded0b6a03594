import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type PackOptions, PlanChangedError, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { packInProcess } from './pack-processes.js';
import { digestsOf, jpeg, newFolder, tree } from './pack-workbench.js';

/** With this option, all data of the plan about files of the source is on disk. */
const ON_DISK = { planMemory: 1 };

/** Images in folders, with captions, a class in a file, duplicates, and a nested folder. */
function source(): string {
  const files: Record<string, string | Uint8Array> = { 'top.jpg': jpeg(99), 'labels.csv': 'path,class,score\n' };
  for (let i = 0; i < 40; i++) {
    const stem = `${'abc'[i % 3]}/${i % 4 === 0 ? 'deep/' : ''}${i}`;
    files[`${stem}.jpg`] = jpeg(i % 17);
    files['labels.csv'] += `${stem}.jpg,${i % 5},${i / 2}\n`;
    if (i % 3 === 0) files[`${stem}.txt`] = `caption ${i}`;
    if (i % 7 === 0) files[`${stem}.cls`] = '3';
  }
  return tree(files);
}

const WAYS: Record<string, (images: string) => PackOptions> = {
  'as it is': () => ({}),
  'with labels': (images) => ({ labels: path.join(images, 'labels.csv') }),
  'without duplicates': () => ({ dedupe: true }),
  'by patterns': () => ({ include: ['**/*.jpg'], exclude: ['b/**'] }),
};

test.each(Object.entries(WAYS))('a plan on disk gives the same bytes as one in memory: %s', async (_, options) => {
  const images = source();
  const given = { ...options(images), maxShardSamples: 7 };
  const [inMemory, onDisk] = [newFolder(), newFolder()];
  await pack(images, inMemory, given);
  const report = await pack(images, onDisk, { ...given, ...ON_DISK, workers: 3 });
  expect(report.samples).toBeGreaterThan(10);
  expect(digestsOf(onDisk)).toEqual(digestsOf(inMemory));
});

test('a pack resumes and a dataset grows with the plan on disk as with one in memory', async () => {
  const images = source();
  const options: PackOptions = { maxShardSamples: 6, shuffle: false };
  const [inMemory, onDisk] = [newFolder(), newFolder()];
  for (const [output, memory] of [
    [inMemory, {}],
    [onDisk, ON_DISK],
  ] as const) {
    writeFileSync(path.join(images, 'c/zz.jpg'), 'no image');
    await expect(pack(images, output, { ...options, ...memory })).rejects.toThrow('c/zz.jpg');
    // A pack can resume with the plan in the other place than before.
    expect((await pack(images, output, { ...options, onBad: 'quarantine', maxBad: 0.5 })).keptShards).toBeGreaterThan(
      0,
    );
    mkdirSync(path.join(images, 'd'));
    writeFileSync(path.join(images, 'd/new.jpg'), jpeg(1));
    expect((await pack(images, output, { append: true, ...memory })).samples).toBe(1);
    rmSync(path.join(images, 'd'), { recursive: true });
  }
  expect(digestsOf(onDisk)).toEqual(digestsOf(inMemory));
});

test('a dry run with its plan on disk creates no output folder', async () => {
  const output = newFolder();
  expect((await pack(source(), output, { ...ON_DISK, dryRun: true })).samples).toBe(41);
  expect(existsSync(output)).toBe(false);
});

test('a changed source is rejected by name, and a pack that fails leaves nothing next to its output', async () => {
  const images = source();
  writeFileSync(path.join(images, 'c/zz.jpg'), 'no image');
  const parent = newFolder();
  const output = path.join(parent, 'out');
  await expect(pack(images, output, ON_DISK)).rejects.toThrow('c/zz.jpg');
  writeFileSync(path.join(images, 'c/zz.jpg'), jpeg(5));
  const again = pack(images, output, ON_DISK);
  await expect(again).rejects.toBeInstanceOf(PlanChangedError);
  await expect(again).rejects.toThrow('c/zz.jpg had 8 bytes');
  expect(readdirSync(parent)).toEqual(['out']);
});

test('if there is no space for the plan, the error says so, and nothing remains', async () => {
  const files = Array.from({ length: 300 }, (_, i) => [`${'long'.repeat(40)}/${i}.jpg`, jpeg(i)]);
  const images = tree(Object.fromEntries(files));
  const output = newFolder();
  // Blocks of 1,024 bytes; the plan needs 53 of them.
  const { stdout } = await packInProcess(images, output, ON_DISK, 'ulimit -f 30;');
  expect(stdout).toMatch(/^DiskFullError: The disk of .* is full: the system allows no larger files/);
  expect(existsSync(output)).toBe(false);
  expect(await pack(images, output, ON_DISK)).toMatchObject({ samples: 300, isCommitted: true });
});
