import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeNpyImage } from '@shardtool/format';
import { type AnnotationOptions, BadSampleError, type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { annotatedTar, HEIGHT, npyFloats, redOf, shapesOf, WIDTH } from './annotated-tar.js';
import { emptyFolder } from './datasets.js';
import { PNG, tree } from './pack-workbench.js';
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

test('boxes are at the pixels of their shapes, for any random transform, with their labels', async () => {
  let objects = 0;
  const off: number[] = [];
  await looked(tar, { transform: random, annotations: fromObjects, epochsPerLoop: 3 }, (batch) => {
    for (const [row, { boxes, labels }] of objectsOf(batch).entries()) {
      const image = batch.images!.subarray(row * 96 * 128 * 3, (row + 1) * 96 * 128 * 3) as Uint8Array;
      labels.forEach((label, i) => {
        objects++;
        const [left, top, right, bottom] = boxes.slice(i * 4, i * 4 + 4) as [number, number, number, number];
        // Just inside the middle of each edge it is red, and just outside it is not, except at the edge of the image.
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

test('annotations are the same with one worker and three, stacked and as a list', async () => {
  const plain = { transform: random, annotations: fromObjects, seed: 3 } as const;
  const once = await looked(tar, { ...plain, workers: 1 }, objectsOf);
  expect(await looked(tar, { ...plain, workers: 3 }, objectsOf)).toEqual(once);
  expect(await looked(tar, { ...plain, collate: 'list' }, objectsOf)).toEqual(once);
  expect(new Set(once.flat().map(({ labels }) => labels.length)).size).toBeGreaterThan(2);
});

test('boxes are read from lists in JSON and from NumPy arrays, in pixels or fractions, in the given format', async () => {
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

test('boxes, labels and keypoints are read from columns of the index: numbers for one object, or JSON', async () => {
  const files = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`${i}.png`, PNG]));
  const rows = Array.from({ length: 8 }, (_, i) => {
    const many = Array.from({ length: i }, (_value, n) => ({ at: [n, i, 2, 3], kind: n }));
    const one = i % 3 === 0 ? {} : { x: i, y: 2.5, w: 3, h: 4, kind: i, px: 1, py: i };
    return JSON.stringify({ path: `${i}.png`, ...one, objects: i === 2 ? null : JSON.stringify(many) });
  });
  const root = tree({ ...files, 'labels.jsonl': rows.join('\n') });
  const output = path.join(root, 'shards');
  await pack(root, output, { labels: path.join(root, 'labels.jsonl'), shuffle: false, workers: 1 });
  const options = { shuffle: false, batchSize: 8, collate: 'list' } as const;
  const single: AnnotationOptions = {
    boxes: { columns: ['x', 'y', 'w', 'h'] },
    labels: { columns: ['kind'] },
    keypoints: { columns: ['px', 'py'], count: 1 },
    boxFormat: 'xywh',
  };
  const [found] = await looked(output, { ...options, annotations: single }, objectsOf);
  const without = { boxes: [], labels: [], rows: [], keypoints: [] };
  expect(found).toEqual(
    Array.from({ length: 8 }, (_, i) =>
      i % 3 === 0 ? without : { boxes: [i, 2.5, 3, 4], labels: [i], rows: [0], keypoints: [1, i, 2] },
    ),
  );
  const several: AnnotationOptions = {
    boxes: { field: 'objects', path: 'at' },
    labels: { field: 'objects', path: 'kind' },
    boxFormat: 'xywh',
  };
  const [listed] = await looked(output, { ...options, annotations: several, workers: 3 }, objectsOf);
  expect(listed!.map(({ labels }) => labels)).toEqual([
    [],
    [0],
    [],
    [0, 1, 2],
    ...[4, 5, 6, 7].map((n) => [...Array(n).keys()]),
  ]);
  expect(listed![3]!.boxes).toEqual([0, 3, 2, 3, 1, 3, 2, 3, 2, 3, 2, 3]);
  // A column of text, and a column without a value next to columns with values.
  const wrong = { boxes: { columns: ['x', 'objects', 'w', 'h'] } };
  await expect(looked(output, { ...options, annotations: wrong }, () => 0)).rejects.toThrow(
    /sample "0" .*item 0 of its columns "x, objects, w, h" contains a value that is not a finite number/,
  );
});

test('keypoints and polygons stay with their boxes', async () => {
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
      // The keypoint is the middle of a pixel: half a pixel from that of the box at first, a whole one afterwards.
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

/** One good sample, and one with the given JSON. */
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

test('a bad sample that is skipped has no objects, and one that is replaced has those of its replacement', async () => {
  const tar = withBad({ ...one, boxes: [[3, 2, 1, 4]] });
  const raised = looked(tar, { annotations: all }, () => 0);
  await expect(raised).rejects.toThrow(BadSampleError);
  await expect(raised).rejects.toThrow(/bad.tar: sample "b" cannot be used: box 0 of .* its corners are swapped/);
  const seen = (batch: Batch) => ({ valid: [...batch.valid], offsets: [...batch.offsets!], boxes: [...batch.boxes!] });
  for (const collate of ['stack', 'list'] as const) {
    const options = { annotations: all, shuffle: false, collate, batchSize: 2, epochsPerLoop: 2 };
    const skipped = { valid: [1, 0], offsets: [0, 1, 1], boxes: [1, 2, 3, 4] };
    expect(await looked(tar, { ...options, onBad: 'skip' }, seen)).toEqual([skipped, skipped]);
    const replaced = { valid: [1, 1], offsets: [0, 1, 2], boxes: [1, 2, 3, 4, 1, 2, 3, 4] };
    expect(await looked(tar, { ...options, onBad: 'replace' }, seen)).toEqual([replaced, replaced]);
  }
});

test('a sample without the field is a bad sample', async () => {
  const bad = withBad(one, [entry({ name: 'b.box.npy' }, npyFloats([1, 2, 3, 4], [1, 4]))]);
  const boxes = { boxes: { field: 'box.npy' } };
  await expect(looked(bad, { annotations: boxes, keys: ['a'] }, () => 0)).rejects.toThrow(
    /"a".* has no field "box.npy"/,
  );
});

test.each<[LoaderOptions, RegExp]>([
  [
    { transform: [{ name: 'randomApply', transforms: [{ name: 'augMix' }] }], annotations: fromObjects },
    /The step augMix mixes .* cannot follow: remove the step, or the option annotations/,
  ],
  [{ transform: [{ name: 'sanitizeBoundingBoxes' }] }, /The step sanitizeBoundingBoxes needs boxes: .*annotations/],
  [
    { transform: [{ name: 'randomIoUCrop' }], annotations: { polygons: { field: 'json' } } },
    /randomIoUCrop needs boxes/,
  ],
  [{ transform: 'raw', annotations: fromObjects }, /remove annotations, or transform 'raw'/],
  [{ annotations: {} }, /annotations contains no field/],
  [{ annotations: { labels: { field: 'json' } } }, /annotations contains only labels/],
  [{ annotations: { boxes: { field: 'jsn' } } }, /annotations: no sample has "jsn".*json/],
  [{ annotations: { boxes: { columns: ['x', 'y', 'w', 'h'] } } }, /annotations: no sample has "x"/],
  [{ annotations: { boxes: { columns: ['x', 'y'] } } }, /annotations.boxes is invalid: it needs 4 columns, not 2/],
  [{ annotations: { boxes: {} } }, /annotations.boxes is invalid: set either field or columns/],
  [{ annotations: { boxes: { columns: ['a', 'b', 'c', 'd'], path: 'e' } } }, /path needs field/],
  [{ annotations: { polygons: { columns: ['a'] } } }, /polygons cannot be read from columns of numbers/],
  [{ annotations: { boxes: { field: 'json', format: 'yxyx' } } as never }, /annotations.boxes.format is invalid/],
  [{ annotations: fromObjects, mix: { name: 'cutmix' } }, /cutmix of the option mix has no rule for boxes/],
])('%j is rejected with a clear message', async (options, message) => {
  await expect(looked(tar, options, () => 0)).rejects.toThrow(message);
});
