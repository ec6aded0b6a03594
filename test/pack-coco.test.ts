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

test.each(['tar', 'msgpack', 'lmdb'] as const)('objects of COCO come with their images out of %s', async (format) => {
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
  ['{"images": [', /is not JSON/],
  ['{"images": [], "annotations": []}', /has no list "categories"/],
  ['{"images": [{"id": 3}], "annotations": [], "categories": []}', /image 3 has no file_name/],
  ['{"images": [{"id": 3, "file_name": "../x.jpg"}], "annotations": [], "categories": []}', /does not lie below/],
  [
    '{"images": [{"id": 3, "file_name": "gone.jpg"}], "annotations": [], "categories": []}',
    /names gone.jpg, which is not/,
  ],
])('a file as %s is refused with a sentence', async (text, message) => {
  const file = path.join(emptyFolder(), 'annotations.json');
  writeFileSync(file, text);
  const packed = pack(set.images, path.join(emptyFolder(), 'shards'), { coco: file, workers: 1 });
  await expect(packed).rejects.toThrow(message);
  await expect(packed).rejects.toThrow(LabelsError);
});

test('labels beside annotations are refused', async () => {
  const packed = pack(set.images, path.join(emptyFolder(), 'shards'), {
    coco: set.annotations,
    classes: ['a'],
    workers: 1,
  });
  await expect(packed).rejects.toThrow(OptionError);
  await expect(packed).rejects.toThrow(/leave out classes, or coco/);
});

test('an image of COCO without a file is listed with the file of annotations, which has no lines', async () => {
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
