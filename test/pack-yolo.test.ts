import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { LabelsError, OptionError } from '@shardtool/base';
import { openDataset } from '@shardtool/reader';
import { type PackOptions, pack } from '@shardtool/writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketServer, defaultBucketServer } from './bucket-server.js';
import { digestsOf, jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';

let server: BucketServer;

beforeAll(async () => {
  server = await defaultBucketServer();
});
afterAll(() => server.stop());

const YAML = 'path: ../set\ntrain: images/train\nnc: 2\nnames:\n  0: dog\n  1: "cat: grey"\n';
/** Invalid lines of a label file, and the reported reasons. */
const ODD: readonly (readonly [string, string])[] = [
  ['2 0.5 0.5 0.1 0.1', 'of an unknown class'],
  ['-1 0.5 0.5 0.1 0.1', 'of an unknown class'],
  ['0.5 0.5 0.5 0.1 0.1', 'of an unknown class'],
  ['dog 0.5 0.5 0.1 0.1', 'with a value that is not a number'],
  ['0 nan 0.5 0.1 0.1', 'with a value that is not a number'],
  ['0 0.5 0.5 0 0.1', 'without area'],
  ['0 0.5 0.5 -0.2 0.1', 'outside the image, or not in fractions of its size'],
  ['0 320 240 30 40', 'outside the image, or not in fractions of its size'],
  ['0 0.5 0.5', 'with a wrong number of values'],
  ['0 0.5 0.5 0.1 0.1 0.9', 'with a wrong number of values'],
  ['1 0.25 0.5 0.25 0.5', 'repeated'],
];
const FILES = {
  'data.yaml': YAML,
  'images/train/a.jpg': jpeg('a'),
  'images/train/b.jpg': jpeg('b'),
  'images/train/empty.jpg': jpeg('empty'),
  'images/train/none.jpg': jpeg('none'),
  'labels/train/a.txt': '1 0.25 0.5 0.25 0.5\r\n\r\n0 0.5 5e-1 1.0 1\r\n',
  'labels/train/b.txt': ['1 0.25 0.5 0.25 0.5', ...ODD.map(([line]) => line), '0 .5 .5 .5 .5'].join('\n'),
  'labels/train/empty.txt': '',
  'labels/train/other.txt': '0 0.5 0.5 0.1 0.1',
};
const OBJECTS = {
  a: {
    boxes: [
      [0.25, 0.5, 0.25, 0.5],
      [0.5, 0.5, 1, 1],
    ],
    labels: [1, 0],
  },
  b: {
    boxes: [
      [0.25, 0.5, 0.25, 0.5],
      [0.5, 0.5, 0.5, 0.5],
    ],
    labels: [1, 0],
  },
  empty: { boxes: [], labels: [] },
  none: { boxes: [], labels: [] },
};

/** The objects of each image, by its name. */
async function objectsIn(output: string): Promise<Record<string, unknown>> {
  const named = (await samplesOf(output)).map(({ key, fields }) => [path.basename(key), JSON.parse(fields.json!)]);
  return Object.fromEntries(named.sort());
}

test('label files in labels next to images become the objects of their images, and invalid lines are reported', async () => {
  const source = tree(FILES);
  const output = newFolder();
  const report = await pack(source, output, { yolo: path.join(source, 'data.yaml'), workers: 1 });
  expect(report).toMatchObject({ samples: 4, classes: ['dog', 'cat: grey'], skipped: { txt: 1 } });
  expect(await objectsIn(output)).toEqual(OBJECTS);
  const listed = readFileSync(path.join(output, 'skipped.jsonl'), 'utf8').trim().split('\n');
  const [other, ...lines] = listed.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(other!.path).toBe('labels/train/other.txt');
  expect(lines).toEqual(
    ODD.map(([, reason], i) => ({ path: 'labels/train/b.txt', line: i + 2, image: 'images/train/b.jpg', reason })),
  );
  expect(Object.values(report.skippedAnnotations).reduce((a, b) => a + b)).toBe(ODD.length);
});

test('a loader has room for as many boxes as any image of the dataset has, also after an append', async () => {
  const line = (n: number) => `0 0.5 0.5 0.5 0.${String(n).padStart(4, '0')}1`;
  const lines = (count: number) => Array.from({ length: count }, (_, n) => line(n)).join('\n');
  const source = tree({ 'a.jpg': jpeg('a'), 'a.txt': lines(2), 'names.txt': 'dog' });
  const output = newFolder();
  const annotations = { boxes: { field: 'json', path: 'boxes', format: 'cxcywh', normalized: true } } as const;
  const yolo = path.join(source, 'names.txt');
  const boxesOf = async (options: { maxBoxes?: number }) => {
    await using dataset = await openDataset(output);
    const { mostObjects } = dataset;
    await using loader = dataset.loader({ workers: 1, annotations: { ...annotations, ...options }, collate: 'list' });
    const counts: number[] = [];
    for await (const { offsets } of loader) counts.push(offsets!.at(-1)!);
    return { mostObjects, counts };
  };
  await pack(source, output, { yolo, workers: 1 });
  expect(await boxesOf({})).toEqual({ mostObjects: 2, counts: [2] });
  await expect(boxesOf({ maxBoxes: 1 })).rejects.toThrow(/2 objects.*maxBoxes is 1/);
  writeFileSync(path.join(source, 'b.jpg'), jpeg('b'));
  writeFileSync(path.join(source, 'b.txt'), lines(600));
  await pack(source, output, { yolo, workers: 1, append: true });
  expect(await boxesOf({})).toEqual({ mostObjects: 600, counts: [602] });
});

test('a loader delivers the boxes in pixels of the transformed image', async () => {
  const source = tree(FILES);
  const output = newFolder();
  await pack(source, output, { yolo: path.join(source, 'data.yaml'), workers: 1 });
  await using dataset = await openDataset(output);
  await using loader = dataset.loader({
    transform: [{ name: 'resize', size: [100, 200] }],
    workers: 1,
    where: 'boxes > 0',
    shuffle: false,
    annotations: {
      boxes: { field: 'json', path: 'boxes', format: 'cxcywh', normalized: true },
      labels: { field: 'json', path: 'labels' },
    },
  });
  let batches = 0;
  for await (const { keys, boxes, boxLabels, offsets } of loader) {
    batches++;
    const of = (name: string) => keys.findIndex((key) => key.endsWith(name));
    const from = (name: string) => offsets![of(name)]!;
    expect([...offsets!]).toEqual([0, 2, 4]);
    expect([...boxes!.subarray(from('a') * 4, from('a') * 4 + 8)]).toEqual([25, 25, 75, 75, 0, 0, 200, 100]);
    expect([...boxLabels!]).toEqual([1, 0, 1, 0]);
  }
  expect(batches).toBe(1);
});

const arrangements: [string, Record<string, string | Uint8Array>, string, string][] = [
  [
    'next to the images',
    { 'a.jpg': jpeg('a'), 'a.txt': FILES['labels/train/a.txt'], 'names.txt': 'dog\ncat\n' },
    '',
    'names.txt',
  ],
  [
    'outside the source',
    { 'images/a.jpg': jpeg('a'), 'labels/a.txt': FILES['labels/train/a.txt'], 'names.txt': 'dog\ncat\n' },
    'images',
    'names.txt',
  ],
  [
    'in each split of a dataset',
    {
      'train/images/a.jpg': jpeg('a'),
      'train/labels/a.txt': FILES['labels/train/a.txt'],
      'a.yml': 'names: [dog, cat]',
    },
    'train',
    'a.yml',
  ],
];
test.each(arrangements)('label files %s are found, and are not fields', async (_, files, below, names) => {
  const root = tree(files);
  const output = newFolder();
  const report = await pack(path.join(root, below), output, { yolo: path.join(root, names), workers: 1 });
  expect(report).toMatchObject({ samples: 1, skippedFiles: 0, classes: ['dog', 'cat'] });
  expect(await objectsIn(output)).toEqual({ a: OBJECTS.a });
  expect(Object.keys((await samplesOf(output))[0]!.fields).sort()).toEqual(['jpg', 'json']);
});

test('a bucket, slow folders and more workers give the same shards', async () => {
  const source = tree(FILES);
  for (const [name, content] of Object.entries(FILES)) server.put(`raw/set/${name}`, content);
  const packed = async (from: string, options: PackOptions) => {
    const output = newFolder();
    await pack(from, output, { yolo: `${from}/data.yaml`, maxShardSamples: 2, ...options });
    return Object.fromEntries(Object.entries(digestsOf(output)).filter(([name]) => /\.(tar|parquet)$/.test(name)));
  };
  const expected = await packed(source, { workers: 1 });
  expect(Object.keys(expected)).toHaveLength(4);
  expect(await packed(source, { workers: 2, inFlight: 4 })).toEqual(expected);
  expect(await packed('s3://raw/set', { workers: 1 })).toEqual(expected);
});

test('polygons and keypoints are packed in addition to the boxes', async () => {
  const polygons = tree({
    'a.jpg': jpeg('a'),
    'a.txt': '0 0.5 0.5 0.5 0.5\n1 0 0 0.5 0 0.5 0.25\n0 0.1 0.1 0.2 0.1 0.2\n',
    'names.txt': 'dog\ncat',
  });
  const output = newFolder();
  const report = await pack(polygons, output, { yolo: path.join(polygons, 'names.txt'), workers: 1 });
  expect(report.skippedAnnotations).toEqual({ 'with a wrong number of values': 1 });
  expect((await objectsIn(output)).a).toEqual({
    boxes: [
      [0.5, 0.5, 0.5, 0.5],
      [0.25, 0.125, 0.5, 0.25],
    ],
    labels: [0, 1],
    segmentation: [[], [[0, 0, 0.5, 0, 0.5, 0.25]]],
  });
  const points = tree({
    'a.jpg': jpeg('a'),
    'a.txt': '0 0.5 0.5 0.5 0.5 0.25 0.75 0 0\n0 0.5 0.5 0.5 0.5\n',
    'data.yaml': 'names: [dog]\nkpt_shape: [2, 2]\n',
  });
  const posed = newFolder();
  await pack(points, posed, { yolo: path.join(points, 'data.yaml'), workers: 1 });
  expect((await objectsIn(posed)).a).toEqual({
    boxes: [[0.5, 0.5, 0.5, 0.5]],
    labels: [0],
    keypoints: [[0.25, 0.75, 2, 0, 0, 0]],
  });
});

test('the next pack detects a changed label file, even outside the source', async () => {
  const root = tree({ 'images/a.jpg': jpeg('a'), 'labels/a.txt': '0 0.5 0.5 0.5 0.5', 'names.txt': 'dog' });
  const output = newFolder();
  const again = () => pack(path.join(root, 'images'), output, { yolo: path.join(root, 'names.txt'), workers: 1 });
  await again();
  expect((await again()).wasCommitted).toBe(true);
  writeFileSync(path.join(root, 'labels/a.txt'), '0 0.5 0.5 0.4 0.5');
  await expect(again()).rejects.toThrow(/--overwrite|"overwrite"/);
});

test.each<[string, string, RegExp]>([
  ['data.yaml', 'names: [dog, ', /data.yaml has no valid list of classes: it is not YAML/],
  ['data.yaml', 'nc: 3', /has no list "names"/],
  ['data.yaml', '- names', /has no list "names"/],
  ['data.yaml', 'names: [dog, dog]', /lists the class "dog" twice/],
  ['data.yaml', 'names: {0: dog, 2: cat}', /2 classes but none with the number 1/],
  ['data.yaml', 'nc: 3\nnames: [dog]', /"nc" is 3, but there are 1 names/],
  ['data.yaml', 'names: [dog]\nkpt_shape: [17]', /"kpt_shape" must be the number of keypoints/],
  ['names.txt', 'dog\n\ncat\n', /names.txt:2 has an empty name/],
  ['names.txt', 'dog', /No image .* a.jpg shardtool looked for .*a.txt/],
])('%s with the text %j is rejected with a clear message', async (name, text, message) => {
  const source = tree({ 'a.jpg': jpeg('a'), [name]: text });
  const packed = pack(source, newFolder(), { yolo: path.join(source, name), workers: 1 });
  await expect(packed).rejects.toThrow(message);
  await expect(packed).rejects.toThrow(LabelsError);
});

test.each<[PackOptions, RegExp]>([
  [{ classes: ['a'] }, /remove either classes or yolo/],
  [{ coco: 'annotations.json' }, /remove either yolo or coco/],
  [
    { coco: 'annotations.json', splits: true, yolo: undefined },
    /"coco" applies to one dataset, but "splits" makes several/,
  ],
  [{ labels: 'labels.csv' }, /remove either labels or yolo/],
])('label files together with %j are rejected', async (options, message) => {
  const packed = pack(tree(FILES), newFolder(), { yolo: 'data.yaml', workers: 1, ...options });
  await expect(packed).rejects.toThrow(message);
  await expect(packed).rejects.toThrow(OptionError);
});
