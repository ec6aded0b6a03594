import { sortByCodePoint } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyCollisionError } from '../errors.js';
import { type SourceFiles, sourceFilesOf } from '../source/source-files.js';
import { cutShards, type PackPlan, type PlanOptions, planShards } from './plan-shards.js';

const OPTIONS: PlanOptions = {
  fields: [],
  maxShardBytes: 2 ** 30,
  maxShardSamples: Number.MAX_SAFE_INTEGER,
  seed: 0,
  shuffle: false,
  classes: null,
  labels: null,
};

function table(paths: readonly string[], bytes = 1000) {
  const files = sourceFilesOf(sortByCodePoint([...paths]), { memoryBytes: 1e6, folder: 'nowhere' });
  if (paths.length > 0) files.fill(0, paths.length, () => ({ bytes, mtimeMs: 0 }));
  return files;
}

/** Returns the plan as shards of samples of paths. */
function planned(paths: readonly string[], options: Partial<PlanOptions> = {}, bytes = 1000): string[][][] {
  const files = table(paths, bytes);
  const plan = planShards(files, { ...OPTIONS, ...options });
  const samples = samplesOf(files, plan);
  return Array.from({ length: plan.shards }, (_, k) => samples.slice(plan.shardStart[k], plan.shardStart[k + 1]));
}

/** Returns the paths of each sample, in the order of the shards. */
function samplesOf(files: SourceFiles, { order, grouping }: PackPlan): string[][] {
  const reader = files.reader();
  return Array.from(order, (sample) => {
    const members = grouping.files.subarray(grouping.fileStart[sample], grouping.fileStart[sample + 1]);
    return Array.from(members, (file) => reader.path(file));
  });
}

test('an image and the files next to it with the same stem are one sample, the image first', () => {
  const paths = [
    'a/cat.cap.txt',
    'a/cat.jpg',
    'a/cat.json',
    'a/cat-2.jpg',
    'a/cat.txt',
    'b/cat.jpg',
    'a/catalog.txt',
    'README',
  ];
  expect(planned(paths)).toEqual([[['a/cat-2.jpg'], ['a/cat.jpg', 'a/cat.json', 'a/cat.txt'], ['b/cat.jpg']]]);
});

test('two photos whose names differ after the first dot are two samples', () => {
  expect(planned(['IMG.0001.jpg', 'IMG.0002.jpg', 'IMG.0001.json'])).toEqual([
    [['IMG.0001.jpg', 'IMG.0001.json'], ['IMG.0002.jpg']],
  ]);
});

test('a file of a requested field belongs to its image, whatever its number of dots; otherwise it is a separate image', () => {
  const paths = ['cat.jpg', 'cat.seg.png', 'dog.jpg', 'dog.mask.png'];
  expect(planned(paths, { fields: ['seg.png', 'mask.png'] })).toEqual([
    [
      ['cat.jpg', 'cat.seg.png'],
      ['dog.jpg', 'dog.mask.png'],
    ],
  ]);
  expect(planned(paths)[0]).toHaveLength(4);
  expect(planned(['cat.jpg', 'cat.png', 'dog.png'], { fields: ['png'] })).toEqual([[['cat.jpg', 'cat.png']]]);
});

test('files with the same key throw an error that names both', () => {
  const collision = (...paths: string[]) => expect(() => planned(paths)).toThrow(expect.objectContaining({ paths }));
  collision('a/IMG.0001.jpg', 'a/IMG_0001.jpg');
  collision('a.b_c.jpg', 'a_b.c.jpg');
  collision('cat.jpg', 'cat.png');
  collision('cat.JPG', 'cat.jpg');
  collision('cat.JSON', 'cat.json');
  expect(() => planned(['cat.jpg', 'cat.png'])).toThrow(KeyCollisionError);
});

test('an image of a rejected kind is a separate sample and collides with nothing', () => {
  expect(planned(['a.jxl', 'a.heic', 'a.jpg', 'a.json'])).toEqual([[['a.heic'], ['a.jpg', 'a.json'], ['a.jxl']]]);
  expect(planned(['a.1.jxl', 'a_1.jpg'])).toEqual([[['a.1.jxl'], ['a_1.jpg']]]);
});

test('keys that are equal in different folders do not collide', () => {
  expect(planned(['a/x.1.jpg', 'b/x_1.jpg'])[0]).toHaveLength(2);
});

test('every image is in exactly one sample, in one shard, whatever the names and the limits', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '_', '-', '1'), minLength: 1, maxLength: 4 });
  const path = fc
    .tuple(name, name, fc.constantFrom('jpg', 'png', 'json', 'a.json'))
    .map(([folder, stem, field]) => `${folder}/${stem}.${field}`);
  fc.assert(
    fc.property(
      fc.uniqueArray(path, { selector: (p) => p.replace('.png', '.jpg') }),
      fc.integer({ min: 1, max: 9 }),
      fc.boolean(),
      (paths, maxShardSamples, shuffle) => {
        const shards = planned(paths, { maxShardSamples, shuffle });
        const images = shards.flat().map((sample) => sample[0]!);
        expect(images.sort()).toEqual(paths.filter((p) => /\.(jpg|png)$/.test(p)).sort());
        for (const [image, ...sidecars] of shards.flat()) {
          for (const sidecar of sidecars) expect(sidecar.split('.')[0]).toBe(image!.split('.')[0]);
        }
        for (const shard of shards) expect(shard.length).toBeLessThanOrEqual(maxShardSamples);
      },
    ),
  );
});

test('classes are the first folders, numbered by code point', () => {
  const files = table(['Zebra/1.jpg', 'ant/x/1.jpg', 'bee/1.jpg', '10/1.jpg', '9/1.jpg', 'top.jpg', 'only-text/a.txt']);
  const plan = planShards(files, OPTIONS);
  expect(plan.classes).toEqual(['10', '9', 'Zebra', 'ant', 'bee']);
  expect([...plan.cls]).toEqual([0, 1, 2, 3, 4, -1]);
});

test('a fixed list of classes defines the numbers, and a class that is not in it throws an error with the file', () => {
  const files = table(['bee/1.jpg', 'ant/1.jpg']);
  const plan = planShards(files, { ...OPTIONS, classes: ['wasp', 'bee', 'ant'] });
  expect([...plan.cls]).toEqual([2, 1]);
  expect(plan.classes).toEqual(['wasp', 'bee', 'ant']);
  expect(() => planShards(files, { ...OPTIONS, classes: ['ant'] })).toThrow('bee/1.jpg');
});

test('with labels only the images that they name are packed, with the class that they give', () => {
  const files = table(['a.jpg', 'a.json', 'b.jpg', 'c.jpg', 'x/d.jpg']);
  const labels = { rowOfFile: Int32Array.of(2, -1, -1, 0, 1), cls: ['dog', 'cat', ''] };
  const plan = planShards(files, { ...OPTIONS, labels });
  expect(samplesOf(files, plan)).toEqual([['a.jpg', 'a.json'], ['c.jpg'], ['x/d.jpg']]);
  expect(plan.classes).toEqual(['cat', 'dog']);
  expect([...plan.cls]).toEqual([-1, 1, 0]);
});

test('labels that are whole numbers are the class numbers', () => {
  const files = table(['a.jpg', 'b.jpg', 'c.jpg']);
  const plan = planShards(files, { ...OPTIONS, labels: { rowOfFile: Int32Array.of(0, 1, 2), cls: ['10', '2', '2'] } });
  expect([...plan.cls]).toEqual([10, 2, 2]);
  expect(plan.classes).toHaveLength(11);
});

test('labels that are other numbers are ordered by their values', () => {
  const files = table(['a.jpg', 'b.jpg', 'c.jpg']);
  const cls = ['10.5', '-1', '2.25'];
  const plan = planShards(files, { ...OPTIONS, labels: { rowOfFile: Int32Array.of(0, 1, 2), cls } });
  expect(plan.classes).toEqual(['-1', '2.25', '10.5']);
});

test('a plan is shuffled by its seed only', () => {
  const paths = Array.from({ length: 40 }, (_, i) => `${i % 3}/${i}.jpg`);
  const shuffled = (seed: number) => planned(paths, { shuffle: true, seed });
  expect(shuffled(1)).toEqual(shuffled(1));
  expect(shuffled(1)).not.toEqual(shuffled(2));
  expect(shuffled(1)).not.toEqual(planned(paths));
});

test('the order of seed 0 equals that of version 1', () => {
  const paths = Array.from({ length: 12 }, (_, i) => `${String.fromCharCode(97 + i)}.jpg`);
  expect(
    planned(paths, { shuffle: true, seed: 0 })[0]!
      .map(([path]) => path![0])
      .join(''),
  ).toBe('cbhiegdajklf');
});

test('shards are about equal in size, and none is above the limit', () => {
  const cut = (sizes: number[], maxBytes: number, maxSamples = 1e9) => [
    ...cutShards(Float64Array.from(sizes), Uint32Array.from(sizes.keys()), maxBytes, maxSamples),
  ];
  expect(cut(new Array(10).fill(1000), 1e9)).toEqual([0, 10]);
  expect(cut(new Array(60).fill(1000), 1e9, 7)).toEqual([0, 7, 14, 21, 28, 35, 42, 48, 54, 60]);
  expect(cut(new Array(12).fill(1000), 1024 + 5000)).toEqual([0, 4, 8, 12]);
  expect(cut([9000, 10, 10, 9000, 10], 1024 + 100)).toEqual([0, 1, 3, 4, 5]);
  expect(cut([3000, 1, 1, 3000, 1, 3000, 1, 1, 1], 1e9, 3)).toEqual([0, 3, 6, 9]);
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1 }),
      fc.integer({ min: 7000, max: 40_000 }),
      (sizes, max) => {
        const starts = cut(sizes, max);
        for (let k = 0; k + 1 < starts.length; k++) {
          const bytes = sizes.slice(starts[k], starts[k + 1]).reduce((a, b) => a + b, 0);
          expect(bytes).toBeGreaterThan(0);
          expect(bytes + 1024).toBeLessThanOrEqual(max);
        }
        expect(starts.at(-1)).toBe(sizes.length);
      },
    ),
  );
});
