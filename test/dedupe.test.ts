import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { type PackOptions, PlanChangedError, pack } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { datasetDigestsOf, digestsOf, jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

interface Line {
  readonly path: string;
  readonly standsFor: string;
  readonly class?: string | null;
  readonly standsForClass?: string | null;
}

function duplicatesIn(output: string): Line[] {
  const file = path.join(output, 'duplicates.jsonl');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function dedupe(source: string, options: PackOptions = {}) {
  const output = newFolder();
  const report = await pack(source, output, { workers: 1, dedupe: true, ...options });
  const sources = (await samplesOf(output)).map((sample) => sample.source);
  return { output, report, sources: sources.sort(), lines: duplicatesIn(output) };
}

test('of images with the same bytes the first by path is packed, and the list maps each duplicate to it', async () => {
  const source = tree({
    'ant/1.jpg': jpeg('one'),
    'ant/2.jpg': jpeg('two'),
    'ant/3.jpg': jpeg('one'),
    'bee/4.jpg': jpeg('one'),
    'bee/5.jpg': jpeg('six'),
    '6.jpg': jpeg('six'),
    'bee/7.jpg': jpeg('seven'),
  });
  const { output, report, sources, lines } = await dedupe(source);
  expect(sources).toEqual(['6.jpg', 'ant/1.jpg', 'ant/2.jpg', 'bee/7.jpg']);
  expect(lines).toEqual([
    { path: 'ant/3.jpg', standsFor: 'ant/1.jpg' },
    { path: 'bee/4.jpg', standsFor: 'ant/1.jpg', class: 'bee', standsForClass: 'ant' },
    { path: 'bee/5.jpg', standsFor: '6.jpg', class: 'bee', standsForClass: null },
  ]);
  expect(report).toMatchObject({ samples: 4, duplicates: 3, classConflicts: 2 });
  expect((await readManifest(output)).samples).toBe(4);
  // No file of the store is left next to the output.
  expect(readdirSync(path.dirname(output))).toEqual(['shards']);
});

test('files next to a duplicate are skipped with it, and masks never count as originals or duplicates', async () => {
  const source = tree({
    'a/1.jpg': jpeg(1),
    'a/1.json': '{}',
    'a/2.jpg': jpeg(1),
    'a/2.json': '{}',
    'a/3.jpg': jpeg(3),
    'a/3.mask.jpg': jpeg(1),
    'a/4.jpg': jpeg(4),
    'a/4.mask.jpg': jpeg(4),
  });
  const { report, sources, lines } = await dedupe(source, { fields: ['mask.jpg'] });
  expect(sources).toEqual(['a/1.jpg', 'a/3.jpg', 'a/4.jpg']);
  expect(lines).toEqual([{ path: 'a/2.jpg', standsFor: 'a/1.jpg' }]);
  expect(report).toMatchObject({ duplicates: 1, classConflicts: 0, skippedFiles: 1 });
});

test('only images that the labels name can be originals, and classes are those of the labels', async () => {
  const source = tree({
    '1.jpg': jpeg(1),
    '2.jpg': jpeg(1),
    '3.jpg': jpeg(1),
    'labels.csv': 'path,class\n2.jpg,cat\n3.jpg,dog\n',
  });
  const { sources, lines } = await dedupe(source, { labels: path.join(source, 'labels.csv') });
  expect(sources).toEqual(['2.jpg']);
  expect(lines).toEqual([{ path: '3.jpg', standsFor: '2.jpg', class: 'dog', standsForClass: 'cat' }]);
});

test('the result equals that of a folder without the duplicates, for any number of workers', async () => {
  const names = Array.from({ length: 600 }, (_, i) => `${i % 7}/${i}.jpg`);
  const source = tree(Object.fromEntries(names.map((name, i) => [name, jpeg(`image ${(i * i) % 311}`)])));
  const { output, lines } = await dedupe(source, { workers: 1 });
  expect(lines.length).toBeGreaterThan(100);
  const three = await dedupe(source, { workers: 3 });
  expect(digestsOf(three.output)).toEqual(digestsOf(output));
  for (const { path: duplicate } of lines) rmSync(path.join(source, duplicate));
  const plain = newFolder();
  await pack(source, plain, { workers: 1 });
  const { 'duplicates.jsonl': list, ...others } = datasetDigestsOf(output);
  expect(list).toBeDefined();
  expect(datasetDigestsOf(plain)).toEqual(others);
});

test('every image is packed, or listed with a packed image of the same bytes', async () => {
  const file = fc.record({ folder: fc.constantFrom('', 'a/', 'b/', 'a/c/'), bytes: fc.nat(5) });
  await fc.assert(
    fc.asyncProperty(fc.array(file, { minLength: 1, maxLength: 12 }), async (files) => {
      const named = files.map(
        ({ folder, bytes }, i) => [`${folder}${i}.jpg`, jpeg('x'.repeat(bytes % 2) + bytes)] as const,
      );
      const content = new Map<string, string>(named.map(([name, bytes]) => [name, bytes.toString('latin1')]));
      const { sources, lines } = await dedupe(tree(Object.fromEntries(named)), { workers: 1 });
      expect([...sources, ...lines.map((line) => line.path)].sort()).toEqual([...content.keys()].sort());
      expect(new Set(sources.map((name) => content.get(name))).size).toBe(sources.length);
      for (const line of lines) {
        expect(sources).toContain(line.standsFor);
        expect(content.get(line.path)).toBe(content.get(line.standsFor));
      }
    }),
    { numRuns: 8 * TIMES },
  );
});

/** Twelve images, two of which are equal to images of another class. */
function withDuplicates(): string {
  const images = Array.from({ length: 9 }, (_, i) => [`a/${i}.jpg`, jpeg(i)] as const);
  return tree({ ...Object.fromEntries(images), 'b/1.jpg': jpeg(1), 'b/7.jpg': jpeg(7), 'b/8.jpg': jpeg('eight') });
}

test('parts skip the same duplicates as a single pack, whichever part plans', async () => {
  const source = withDuplicates();
  const options = { dedupe: true, maxShardSamples: 2, workers: 1 };
  const alone = newFolder();
  await pack(source, alone, options);
  expect(duplicatesIn(alone)).toHaveLength(2);
  const output = newFolder();
  const parts = [0, 1, 2].map((index) => pack(source, output, { ...options, part: { index, of: 3 } }));
  const reports = await Promise.all(parts);
  expect(reports.reduce((sum, { samples }) => sum + samples, 0)).toBe(10);
  expect(digestsOf(output)).toEqual(digestsOf(alone));
  expect(readdirSync(path.dirname(output))).toEqual(['shards']);
});

test('a pack that was stopped resumes with the duplicates that it had found, and lists each once', async () => {
  const source = withDuplicates();
  const options: PackOptions = { maxShardSamples: 1, shuffle: false, workers: 1, dedupe: true };
  const bad = path.join(source, 'a/5.jpg');
  const image = readFileSync(bad);
  const { mtime } = statSync(bad);
  writeFileSync(bad, Buffer.alloc(image.length));
  utimesSync(bad, mtime, mtime);
  const output = newFolder();
  await expect(pack(source, output, options)).rejects.toThrow('a/5.jpg');
  writeFileSync(bad, image);
  utimesSync(bad, mtime, mtime);
  const report = await pack(source, output, options);
  expect(report).toMatchObject({ samples: 10, duplicates: 2, classConflicts: 2, keptShards: 5, isCommitted: true });
  expect(duplicatesIn(output).map((line) => line.path)).toEqual(['b/1.jpg', 'b/7.jpg']);
  const alone = newFolder();
  await pack(source, alone, options);
  expect(digestsOf(output)).toEqual(digestsOf(alone));
});

test('an image that became a duplicate while a pack was stopped counts as a changed source and is rejected', async () => {
  const source = withDuplicates();
  const options: PackOptions = { maxShardSamples: 1, shuffle: false, workers: 1, dedupe: true };
  writeFileSync(path.join(source, 'a/5.jpg'), 'no image');
  const output = newFolder();
  await expect(pack(source, output, options)).rejects.toThrow('a/5.jpg');
  writeFileSync(path.join(source, 'a/5.jpg'), jpeg(4));
  await expect(pack(source, output, { workers: 1, ...options, onBad: 'quarantine' })).rejects.toThrow(PlanChangedError);
  expect(await pack(source, output, { workers: 1, ...options, restart: true })).toMatchObject({
    samples: 9,
    duplicates: 3,
  });
});

test('a duplicate of an image that cannot be packed is quarantined, and an append packs it', async () => {
  const source = tree({
    'a.jpg': jpeg('one'),
    'b.jpg': jpeg('two'),
    'c.jpg': jpeg('one'),
    'a.txt': 'x'.repeat(100_000),
  });
  const options: PackOptions = { dedupe: true, onBad: 'quarantine', maxBad: 1, maxSampleBytes: 50_000 };
  const { output, report, sources } = await dedupe(source, options);
  expect(sources).toEqual(['b.jpg']);
  const listed = () => {
    const text = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd();
    return text.split('\n').map((line) => JSON.parse(line) as { path: string; reason: string });
  };
  expect(listed().map((entry) => entry.path)).toEqual(['a.jpg', 'c.jpg']);
  expect(listed()[1]!.reason).toMatch(/^It has the bytes of a\.jpg, which is not packed: a\.jpg and the 1 next to it/);
  expect(report).toMatchObject({ samples: 1, quarantined: 2 });

  await pack(source, output, { ...options, append: true, workers: 1 });
  expect((await samplesOf(output)).map((sample) => sample.source).sort()).toEqual(['b.jpg', 'c.jpg']);
  expect(listed().map((entry) => entry.path)).toEqual(['a.jpg']);
});

test('without duplicates there is no list, and --overwrite removes the list of an earlier pack', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(1) });
  const { output } = await dedupe(source);
  expect(duplicatesIn(output)).toHaveLength(1);
  writeFileSync(path.join(source, 'a/2.jpg'), jpeg(2));
  expect(await pack(source, output, { workers: 1, dedupe: true, overwrite: true })).toMatchObject({
    samples: 2,
    duplicates: 0,
  });
  expect(existsSync(path.join(output, 'duplicates.jsonl'))).toBe(false);
});

test('a dry run counts duplicates too, and leaves no files', async () => {
  const output = newFolder();
  const source = tree({ 'a/1.jpg': jpeg(1), 'b/2.jpg': jpeg(1) });
  expect(await pack(source, output, { workers: 1, dedupe: true, dryRun: true })).toMatchObject({
    samples: 1,
    duplicates: 1,
  });
  expect(readdirSync(path.dirname(output))).toEqual([]);
});

test('pack --dedupe prints how many images were skipped, and how many have another class', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'b/2.jpg': jpeg(1), 'b/3.jpg': jpeg(1) });
  const { code, stdout } = await shardtool('pack', source, newFolder(), '--dedupe');
  expect(code).toBe(0);
  expect(stdout).toContain('  2 images have the same bytes as others and were skipped (duplicates.jsonl lists them)\n');
  expect(stdout).toContain('  2 of them have other classes than the images that were packed');
});
