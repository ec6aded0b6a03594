import { expect, test } from 'vitest';
import { drawn, objectsOf } from './objects.js';

const size = { width: 200, height: 100 };
const classes = ['cat', 'dog'];
const found = (json: unknown) =>
  objectsOf({ fields: { json: Buffer.from(JSON.stringify(json)) }, columns: {} }, undefined);

test('boxes of COCO are read as pixels and those of YOLO as fractions of the image, without an option', () => {
  const coco = { boxes: [[10, 20, 30, 40]], labels: [1] };
  expect(drawn(found(coco)!, size, classes)).toMatchObject([{ label: 'dog', box: [10, 20, 40, 60] }]);
  const yolo = { boxes: [[0.5, 0.5, 0.5, 1]], labels: [0], segmentation: [[[0, 0, 1, 0, 0.5, 1]]] };
  expect(drawn(found(yolo)!, size, classes)).toMatchObject([
    { label: 'cat', box: [50, 0, 150, 100], polygons: [[0, 0, 200, 0, 100, 100]] },
  ]);
  expect(found({ something: 'else' })).toBeNull();
});
