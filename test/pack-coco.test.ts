import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { LabelsError, OptionError } from '@shardtool/base';
import { openDataset } from '@shardtool/reader';
import { pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { cocoSet, ODD } from './coco-set.js';
import { emptyFolder } from './datasets.js';
import { digestsOf } from './pack-workbench.js';

const set = cocoSet(12);

test.each(['tar', 'msgpack', 'lmdb'] as const)('objects of COCO are packed with their images in %s', async (format) => {
  const output = path.join(emptyFolder(), 'shards');
  const report = await pack(set.images, output, { coco: set.annotations, format, workers: 1, maxShardSamples: 5 });
  expect(report.skippedAnnotations).toEqual(Object.fromEntries(Object.values(ODD).map((reason) => [reason, 1])));
  const listed = readFileSync(path.join(output, 'skipped.jsonl'), 'utf8').trim().split('\n');
  const lines = listed.map((line) => JSON.parse(line) as { annotation: number; reason: string; image: unknown });
  expect(Object.fromEntries(lines.map(({ annotation, reason }) => [annotation, reason]))).toEqual(ODD);
  expect(lines.find(({ annotation }) => annotation === 902)!.image).toBe('0000.jpg');
  expect((await verify(output, { workers: 1 })).faults).toBe(0);
  await using dataset = await openDataset(output);
  expect(dataset.classes).toEqual(['person', 'truck', 'dog']);
  await using loader = dataset.loader({
    transform: [{ name: 'resize', size: [240, 320] }],
    shuffle: false,
    batchSize: 12,
    workers: 1,
    annotations: {
      boxes: { field: 'json', path: 'boxes' },
      labels: { field: 'json', path: 'labels' },
      polygons: { field: 'json', path: 'segmentation' },
      boxFormat: 'xywh',
    },
    fields: ['boxes', 'image_id', 'json'],
  });
  for await (const { offsets, boxLabels, polygons, fields, keys } of loader) {
    keys.forEach((key, row) => {
      const i = Number(key);
      const [from, to] = [offsets![row]!, offsets![row + 1]!];
      expect(to - from).toBe(i % 3);
      expect(fields.boxes![row]).toBe(i % 3);
      expect(fields.image_id![row]).toBe(100 + i);
      expect((fields.json![row] as { iscrowd: number[] }).iscrowd).toEqual([0, 1].slice(0, i % 3));
      // Categories by their ids: person, truck, dog.
      expect([...boxLabels!.subarray(from, to)]).toEqual([0, 1].slice(0, i % 3).map((n) => [1, 0, 2][(i + n) % 3]));
    });
    expect(polygons!.objectOffsets.at(-1)).toBe(offsets!.at(-1));
  }
});

test('packing annotations again, and with more workers, gives the same bytes', async () => {
  const [one, other] = [path.join(emptyFolder(), 'one'), path.join(emptyFolder(), 'other')];
  await pack(set.images, one, { coco: set.annotations, workers: 1, maxShardSamples: 4 });
  await pack(set.images, other, { coco: set.annotations, workers: 2, maxShardSamples: 4 });
  const shards = (digests: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(digests).filter(([name]) => /\.(tar|parquet)$/.test(name)));
  expect(shards(digestsOf(one))).toEqual(shards(digestsOf(other)));
});

test.each([
  ['{"images": [', /is not valid JSON/],
  ['{"images": [], "annotations": []}', /has no list "categories"/],
  ['{"images": [{"id": 3}], "annotations": [], "categories": []}', /image 3 has no file_name/],
  ['{"images": [{"id": 3, "file_name": "../x.jpg"}], "annotations": [], "categories": []}', /is not below/],
  [
    '{"images": [{"id": 3, "file_name": "gone.jpg"}], "annotations": [], "categories": []}',
    /names gone.jpg, which is not/,
  ],
])('the annotations file %s is rejected with a clear message', async (text, message) => {
  const file = path.join(emptyFolder(), 'annotations.json');
  writeFileSync(file, text);
  const packed = pack(set.images, path.join(emptyFolder(), 'shards'), { coco: file, workers: 1 });
  await expect(packed).rejects.toThrow(message);
  await expect(packed).rejects.toThrow(LabelsError);
});

const IMAGE = { id: 1, file_name: '0000.jpg', width: 500, height: 333 };
/** Another file, without a size. */
const OTHER = { id: 2, file_name: '0001.jpg' };
const CATEGORY = { id: 1, name: 'cat' };
/** Integers that a number cannot distinguish, so they are text here and unquoted in the file. */
const [LARGE, NEXT] = ['1234567890123456780', '1234567890123456781'];

test.each([
  [{ images: [IMAGE, { ...IMAGE, file_name: '0001.jpg' }] }, 'the images "0000.jpg" and "0001.jpg" both have the id 1'],
  [{ images: [IMAGE, { ...IMAGE, id: 2 }] }, 'images 1 and 2 are both the file 0000.jpg'],
  [{ images: [IMAGE, { ...IMAGE, id: 2, file_name: './0000.jpg' }] }, 'images 1 and 2 are both the file 0000.jpg'],
  [
    {
      images: [
        { ...IMAGE, id: LARGE },
        { ...IMAGE, id: NEXT },
      ],
    },
    `the image "0000.jpg" has the id ${LARGE}, and it is above 2^53`,
  ],
  [{ images: [{ file_name: 'a.jpg' }] }, 'the image "a.jpg" has no id'],
  [{ images: [null] }, 'images[0] is null, not an object'],
  [{ categories: [CATEGORY, { id: 1, name: 'dog' }] }, 'the categories "cat" and "dog" both have the id 1'],
  [{ categories: [{ id: LARGE, name: 'dog' }] }, `the category "dog" has the id ${LARGE}, and it is above 2^53`],
  [{ categories: [{ id: 1 }] }, 'category 1 has no name'],
  [{ categories: [{ id: 1, name: null }] }, 'category 1 has no name'],
  [{ categories: [null] }, 'categories[0] is null, not an object'],
  [{ annotations: [7] }, 'annotations[0] is 7, not an object'],
  [{ annotations: [{ id: LARGE }] }, `annotation ${LARGE} is above 2^53`],
])('ambiguous annotations are rejected: %j', async (given, sentence) => {
  const file = path.join(emptyFolder(), 'annotations.json');
  const text = JSON.stringify({ images: [IMAGE], annotations: [], categories: [CATEGORY], ...given });
  writeFileSync(file, text.replaceAll(/"(\d{16,})"/g, '$1'));
  const packed = pack(set.images, path.join(emptyFolder(), 'shards'), { coco: file, workers: 1 });
  await expect(packed).rejects.toThrow(sentence);
  await expect(packed).rejects.toThrow(LabelsError);
});

test('category names may be numbers, and ids text', async () => {
  const folder = emptyFolder();
  const annotations = [{ image_id: '0', category_id: 'b', bbox: [1, 1, 3, 3] }];
  const categories = [
    { id: 'b', name: 7 },
    { id: 'a', name: 'cat' },
  ];
  const text = JSON.stringify({ images: [{ ...IMAGE, id: '0' }], annotations, categories });
  writeFileSync(path.join(folder, 'annotations.json'), text);
  const report = await pack(set.images, path.join(folder, 'shards'), { coco: path.join(folder, 'annotations.json') });
  expect(report).toMatchObject({ samples: 1, classes: ['cat', '7'], skippedAnnotations: {} });
});

test('an image whose size differs from its annotations is a bad file', async () => {
  const folder = emptyFolder();
  const file = path.join(folder, 'annotations.json');
  const images = [{ ...IMAGE, width: 640 }, OTHER];
  writeFileSync(file, JSON.stringify({ images, annotations: [], categories: [CATEGORY] }));
  const options = { coco: file, workers: 1 };
  const sentence = '0000.jpg has 500x333 pixels, but its annotations are for 640x333';
  await expect(pack(set.images, path.join(folder, 'stopped'), options)).rejects.toThrow(sentence);
  const output = path.join(folder, 'shards');
  const report = await pack(set.images, output, { ...options, onBad: 'quarantine', maxBad: 1 });
  expect(report).toMatchObject({ samples: 1, quarantined: 1 });
  expect(readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8')).toContain(sentence);
});

test('annotations of an image with an EXIF rotation may be for either orientation', async () => {
  const photo = readFileSync(path.join(set.images, '0000.jpg'));
  // EXIF with one entry, the orientation: rotate by 90 degrees.
  const exif = Buffer.from('ffe100224578696600004d4d002a00000008000101120003000000010006000000000000', 'hex');
  const turned = Buffer.concat([photo.subarray(0, 2), exif, photo.subarray(2)]);
  for (const size of [
    { width: 500, height: 333 },
    { width: 333, height: 500 },
  ]) {
    const folder = emptyFolder();
    writeFileSync(path.join(folder, '0000.jpg'), turned);
    const coco = path.join(folder, 'annotations.json');
    writeFileSync(coco, JSON.stringify({ images: [{ ...IMAGE, ...size }], annotations: [], categories: [CATEGORY] }));
    expect(await pack(folder, path.join(folder, 'shards'), { coco, workers: 1 })).toMatchObject({ samples: 1 });
  }
});

test('boxes in pixels and smaller images are rejected together', async () => {
  const packed = pack(set.images, path.join(emptyFolder(), 'shards'), {
    coco: set.annotations,
    resize: 100,
    workers: 1,
  });
  await expect(packed).rejects.toThrow(OptionError);
  await expect(packed).rejects.toThrow('"resize" would shrink the images but not the boxes of "coco"');
});

test('the option labels in addition to annotations is rejected', async () => {
  const packed = pack(set.images, path.join(emptyFolder(), 'shards'), {
    coco: set.annotations,
    classes: ['a'],
    workers: 1,
  });
  await expect(packed).rejects.toThrow(OptionError);
  await expect(packed).rejects.toThrow(/remove either classes or coco/);
});

test('an image of COCO without a file is listed with the file of annotations, without a line number', async () => {
  const folder = emptyFolder();
  const annotations = path.join(folder, 'gone.json');
  const given = JSON.parse(readFileSync(set.annotations, 'utf8')) as { images: object[] };
  given.images.push({ id: 4242, file_name: 'gone.jpg', width: 8, height: 8 });
  writeFileSync(annotations, JSON.stringify(given));
  const output = path.join(folder, 'shards');
  await pack(set.images, output, { coco: annotations, onBad: 'quarantine', maxBad: 1, workers: 1 });
  expect(readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8')).toContain(
    `"reason":"${annotations} names gone.jpg, which is not among the files of the source."`,
  );
});
