import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeNpyImage } from '@shardtool/format';
import { type AnnotationOptions, BadSampleError, type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { annotatedTar, HEIGHT, npyFloats, redOf, shapesOf, WIDTH } from './annotated-tar.js';
import { emptyFolder } from './datasets.js';
import { archive, entry } from './tar-craft.js';

async function looked<Seen>(location: string, options: LoaderOptions, look: (batch: Batch) => Seen): Promise<Seen[]> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ workers: 1, batchSize: 6, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  return seen;
}

const tar = annotatedTar(30);
const fromObjects: AnnotationOptions = {
  boxes: { field: 'json', path: 'objects.bbox', format: 'xywh' },
  labels: { field: 'json', path: 'objects.label' },
  keypoints: { field: 'json', path: 'objects.middle', count: 1 },
  polygons: { field: 'json', path: 'objects.segmentation' },
};
const random = [
  { name: 'randomHorizontalFlip' },
  { name: 'randomVerticalFlip' },
  { name: 'randomZoomOut', p: 0.5, sideRange: [1, 2] },
  { name: 'randomIoUCrop', minScale: 0.6 },
  { name: 'sanitizeBoundingBoxes', minSize: 3 },
  { name: 'resize', size: [96, 128] },
] as const;

/** The objects of each row, as plain numbers. */
function objectsOf({ offsets, boxes, boxLabels, boxRows, keypoints, size }: Batch) {
  return Array.from({ length: size }, (_, row) => {
    const [from, to] = [offsets![row]!, offsets![row + 1]!];
    return {
      boxes: [...boxes!.subarray(from * 4, to * 4)],
      labels: [...boxLabels!.subarray(from, to)],
      rows: [...boxRows!.subarray(from, to)],
      keypoints: keypoints && [...keypoints.values.subarray(from * 3, to * 3)],
    };
  });
}

test('boxes lie where the pixels of their shapes lie, whatever was drawn, with their labels', async () => {
  let objects = 0;
  const off: number[] = [];
  await looked(tar, { transform: random, annotations: fromObjects, repeat: 3 }, (batch) => {
    for (const [row, { boxes, labels }] of objectsOf(batch).entries()) {
      const image = batch.images!.subarray(row * 96 * 128 * 3, (row + 1) * 96 * 128 * 3) as Uint8Array;
      labels.forEach((label, i) => {
        objects++;
        const [left, top, right, bottom] = boxes.slice(i * 4, i * 4 + 4) as [number, number, number, number];
        // Just inside the middle of each edge it is red, just outside it is not, but at the image's own edge.
        const [x, y] = [(left + right) / 2, (top + bottom) / 2];
        const red = (atX: number, atY: number) => image[(Math.floor(atY) * 128 + Math.floor(atX)) * 3]!;
        const inside = [red(x, y), red(left + 2.5, y), red(right - 2.5, y), red(x, top + 2.5), red(x, bottom - 2.5)];
        off.push(...inside.map((value) => Math.abs(value - redOf(label))));
        const outside = [
          left > 4 ? red(left - 3, y) : 0,
          right < 124 ? red(right + 3, y) : 0,
          top > 4 ? red(x, top - 3) : 0,
          bottom < 92 ? red(x, bottom + 3) : 0,
        ];
        off.push(...outside.map((value) => Math.abs(value)));
      });
    }
  });
  expect(objects).toBeGreaterThan(60);
  expect(Math.max(...off)).toBeLessThan(30);
});

test('what lies on images is the same with one worker and three, stacked and as a list', async () => {
  const plain = { transform: random, annotations: fromObjects, seed: 3 } as const;
  const once = await looked(tar, { ...plain, workers: 1 }, objectsOf);
  expect(await looked(tar, { ...plain, workers: 3 }, objectsOf)).toEqual(once);
  expect(await looked(tar, { ...plain, collate: 'list' }, objectsOf)).toEqual(once);
  expect(new Set(once.flat().map(({ labels }) => labels.length)).size).toBeGreaterThan(2);
});

test('boxes come from lists in JSON and from arrays of NumPy, in pixels or parts, in the format asked for', async () => {
  const still = { shuffle: false, batchSize: 30 } as const;
  const given = Array.from({ length: 30 }, (_, i) => shapesOf(i));
  for (const annotations of [
    fromObjects,
    { boxes: { field: 'json', path: 'boxes' }, labels: { field: 'json', path: 'labels' } },
    { boxes: { field: 'box.npy', format: 'xyxy', normalized: true }, labels: { field: 'json', path: 'labels' } },
  ] as const satisfies readonly AnnotationOptions[]) {
    const [xywh] = await looked(tar, { ...still, annotations: { ...annotations, boxFormat: 'xywh' } }, objectsOf);
    const [middles] = await looked(tar, { ...still, annotations: { ...annotations, boxFormat: 'cxcywh' } }, objectsOf);
    given.forEach((shapes, row) => {
      const expected = shapes.flatMap(({ bbox }) => bbox);
      expected.forEach((value, i) => {
        expect(xywh![row]!.boxes[i]).toBeCloseTo(value, 4);
        const [x, y, width, height] = shapes[i >> 2]!.bbox;
        expect(middles![row]!.boxes[i]).toBeCloseTo([x + width / 2, y + height / 2, width, height][i & 3]!, 4);
      });
      expect(xywh![row]!.labels).toEqual(shapes.map(({ label }) => label));
      expect(xywh![row]!.boxes).toHaveLength(expected.length);
    });
  }
});

test('keypoints and polygons keep to their boxes', async () => {
  const transform = [{ name: 'randomHorizontalFlip' }, { name: 'resize', size: [HEIGHT * 2, WIDTH * 2] }] as const;
  let polygonCount = 0;
  await looked(tar, { transform, annotations: fromObjects }, ({ boxes, keypoints, polygons, offsets }) => {
    const objects = offsets!.at(-1)!;
    const { points, pointOffsets, objectOffsets } = polygons!;
    expect(keypoints!.values).toHaveLength(objects * 3);
    expect(objectOffsets).toHaveLength(objects + 1);
    for (let object = 0; object < objects; object++) {
      const [left, top, right, bottom] = boxes!.subarray(object * 4, object * 4 + 4);
      const [x, y, seen] = keypoints!.values.subarray(object * 3, object * 3 + 3);
      // The keypoint is the middle of a pixel: half a pixel off that of the box before, a whole one after.
      expect(Math.abs(x! - (left! + right!) / 2)).toBeLessThanOrEqual(1);
      expect(Math.abs(y! - (top! + bottom!) / 2)).toBeLessThanOrEqual(1);
      expect(seen).toBe(2);
      const [from, to] = [pointOffsets[objectOffsets[object]!]!, pointOffsets[objectOffsets[object + 1]!]!];
      const corners = points.subarray(from * 2, to * 2);
      const xs = corners.filter((_, i) => i % 2 === 0);
      const ys = corners.filter((_, i) => i % 2 === 1);
      expect([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]).toEqual([left, top, right, bottom]);
      polygonCount += objectOffsets[object + 1]! - objectOffsets[object]!;
    }
  });
  expect(polygonCount).toBe(Array.from({ length: 30 }, (_, i) => shapesOf(i).length).reduce((a, b) => a + b));
});

/** One good sample, and one whose JSON is as given. */
function withBad(json: unknown, more: readonly Buffer[] = []): string {
  const file = path.join(emptyFolder(), 'bad.tar');
  const image = Buffer.from(encodeNpyImage(new Uint8Array(20 * 20 * 3), 20, 20));
  const good = { boxes: [[1, 2, 3, 4]], labels: [0], points: [[1, 2]], polygons: [[1, 1, 5, 1, 5, 5]] };
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  writeFileSync(
    file,
    archive(
      entry({ name: 'a.npy' }, image),
      entry({ name: 'a.json' }, Buffer.from(JSON.stringify(good))),
      entry({ name: 'b.npy' }, image),
      entry({ name: 'b.json' }, Buffer.from(text)),
      ...more,
    ),
  );
  return file;
}

const all: AnnotationOptions = {
  boxes: { field: 'json', path: 'boxes', format: 'xyxy' },
  labels: { field: 'json', path: 'labels' },
  keypoints: { field: 'json', path: 'points', count: 1 },
  polygons: { field: 'json', path: 'polygons' },
};
const one = { boxes: [[1, 2, 3, 4]], labels: [0], points: [[1, 2]], polygons: [[1, 1, 5, 1, 5, 5]] };

test('a bad sample that is skipped has no objects, and one that is replaced has those of the other', async () => {
  const tar = withBad({ ...one, boxes: [[3, 2, 1, 4]] });
  const raised = looked(tar, { annotations: all }, () => 0);
  await expect(raised).rejects.toThrow(BadSampleError);
  await expect(raised).rejects.toThrow(/bad.tar: sample "b" cannot be used: box 0 of .* its corners are swapped/);
  const seen = (batch: Batch) => ({ valid: [...batch.valid], offsets: [...batch.offsets!], boxes: [...batch.boxes!] });
  for (const collate of ['stack', 'list'] as const) {
    const options = { annotations: all, shuffle: false, collate, batchSize: 2, repeat: 2 };
    const skipped = { valid: [1, 0], offsets: [0, 1, 1], boxes: [1, 2, 3, 4] };
    expect(await looked(tar, { ...options, onBadSample: 'skip' }, seen)).toEqual([skipped, skipped]);
    const replaced = { valid: [1, 1], offsets: [0, 1, 2], boxes: [1, 2, 3, 4, 1, 2, 3, 4] };
    expect(await looked(tar, { ...options, onBadSample: 'substitute' }, seen)).toEqual([replaced, replaced]);
  }
});

test('a sample without the field is a bad one', async () => {
  const bad = withBad(one, [entry({ name: 'b.box.npy' }, npyFloats([1, 2, 3, 4], [1, 4]))]);
  const boxes = { boxes: { field: 'box.npy' } };
  await expect(looked(bad, { annotations: boxes, keys: ['a'] }, () => 0)).rejects.toThrow(
    /"a".* has no field "box.npy"/,
  );
});

test.each<[LoaderOptions, RegExp]>([
  [{ transform: [{ name: 'sanitizeBoundingBoxes' }] }, /The step sanitizeBoundingBoxes goes by boxes: .*annotations/],
  [
    { transform: [{ name: 'randomIoUCrop' }], annotations: { polygons: { field: 'json' } } },
    /randomIoUCrop goes by boxes/,
  ],
  [{ transform: 'raw', annotations: fromObjects }, /leave out annotations, or transform 'raw'/],
  [{ annotations: {} }, /annotations names nothing/],
  [{ annotations: { labels: { field: 'json' } } }, /labels and nothing that they are of/],
  [{ annotations: { boxes: { field: 'jsn' } } }, /annotations: no sample has "jsn".*json/],
  [{ annotations: { boxes: { field: 'json', format: 'yxyx' } } as never }, /annotations.boxes.format is not right/],
  [{ annotations: fromObjects, mix: { name: 'mixup' } }, /leave out moreImages, masks and annotations, or mix/],
])('%j is refused with a sentence', async (options, message) => {
  await expect(looked(tar, options, () => 0)).rejects.toThrow(message);
});
