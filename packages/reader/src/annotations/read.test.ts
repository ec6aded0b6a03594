import { SampleDecodeError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { type AnnotationOptions, checkAnnotations } from './options.js';
import { readAnnotations } from './read.js';

const all: AnnotationOptions = {
  boxes: { field: 'json', path: 'boxes', format: 'xyxy' },
  labels: { field: 'json', path: 'labels' },
  keypoints: { field: 'json', path: 'points', count: 1 },
  polygons: { field: 'json', path: 'polygons' },
};
const one = { boxes: [[1, 2, 3, 4]], labels: [0], points: [[1, 2]], polygons: [[1, 1, 5, 1, 5, 5]] };

function read(json: unknown, options: AnnotationOptions = all) {
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  return readAnnotations(checkAnnotations(options), { json: Buffer.from(text) });
}

test.each<[unknown, RegExp]>([
  [
    { ...one, boxes: [[1, 2, null, 4]] },
    /item 0 of "boxes" of its field "json" contains a value that is not a finite number/,
  ],
  [{ ...one, boxes: [[3, 2, 1, 4]] }, /box 0 of .*\[3, 2, 1, 4\] as xyxy, is invalid: its corners are swapped/],
  [{ ...one, boxes: [[1, 2, 3]] }, /item 0 of .* is not a list of 4 numbers/],
  [{ ...one, boxes: ['1, 2, 3, 4'] }, /item 0 of .* is not a list of 4 numbers/],
  [{ ...one, boxes: 7 }, /"boxes" of its field "json" is not a list/],
  [{ labels: [0] }, /"boxes" of its field "json" is missing/],
  [{ ...one, labels: [0, 1] }, /it has 1 boxes but 2 labels: both must have the same number/],
  [{ ...one, labels: ['cat'] }, /label 0 of .*, "cat", is not a class number/],
  [{ ...one, labels: [1.5] }, /label 0 of .*, 1.5, is not a class number/],
  [{ ...one, points: [[1, 2, 3, 4]] }, /has 4 numbers, but 1 keypoints need 2 or 3 numbers each/],
  [
    { ...one, polygons: [[1, 1, 5, 5]] },
    /polygon 0 of .* has 4 numbers, but it needs x and y of at least three corners/,
  ],
  [{ ...one, polygons: [[1, 1, 5, 5, 7, 'x']] }, /item 0 of .*polygons.* not a finite number/],
  ['{"boxes": [[', /its field "json" does not have the format of its extension/],
  ['null', /"boxes" of its field "json" is missing/],
])('%j is a bad sample with a reason', (json, message) => {
  expect(() => read(json)).toThrow(SampleDecodeError);
  expect(() => read(json)).toThrow(message);
});

test('the messages for a negative size and for too many objects or corners contain a remedy', () => {
  const boxes = { boxes: { field: 'json' } } as const;
  expect(() => read([[1, 2, -3, 4]], boxes)).toThrow(/box 0 of its field "json".* its size is negative/);
  expect(() => read([one.boxes[0], one.boxes[0]], { ...boxes, maxBoxes: 1 })).toThrow(
    /2 objects.*maxBoxes is 1: raise it/,
  );
  const polygons = { polygons: { field: 'json', path: 'polygons' }, maxPoints: 2 };
  expect(() => read(one, polygons)).toThrow(/more than 2 corners.*annotations.maxPoints: raise it/);
});

test('a path goes through lists, and an object may have one polygon as numbers or pairs, several polygons, or none', () => {
  const objects = [
    { box: [1, 2, 3, 4], at: { polygons: [0, 0, 1, 0, 1, 1] } },
    {
      box: [1, 2, 3, 4],
      at: {
        polygons: [
          [0, 0],
          [1, 0],
          [1, 1],
        ],
      },
    },
    {
      box: [1, 2, 3, 4],
      at: {
        polygons: [
          [0, 0, 1, 0, 1, 1],
          [5, 5, 6, 5, 6, 6, 5, 6],
        ],
      },
    },
    { box: [1, 2, 3, 4], at: { polygons: { size: [3, 3], counts: 'RLE' } } },
  ];
  const options = {
    boxes: { field: 'json', path: 'objects.box', format: 'xywh' },
    polygons: { field: 'json', path: 'objects.at.polygons' },
  } as const;
  const { boxes, polygons, count } = read({ objects }, options);
  expect(count).toBe(4);
  expect([...boxes!.subarray(0, 4)]).toEqual([1, 2, 4, 6]);
  expect(polygons!.map((rings) => rings.map((ring) => ring.length))).toEqual([[6], [6], [6, 8], []]);
});
