import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { OptionError } from '@shardtool/base';
import { type AnnotationOptions, countAnnotations, openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { annotatedTar, HEIGHT, shapesOf, WIDTH } from './annotated-tar.js';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';

const tar = annotatedTar(30);
const shapes = Array.from({ length: 30 }, (_, i) => shapesOf(i));
const all = shapes.flat();

async function counted(annotations: AnnotationOptions, location = tar) {
  await using dataset = await openDataset(location);
  return await countAnnotations(dataset, annotations);
}

test('objects are counted by class and size, and so are images without objects', async () => {
  const stats = await counted({
    boxes: { field: 'json', path: 'objects.bbox' },
    labels: { field: 'json', path: 'objects.label' },
  });
  const without = shapes.filter(({ length }) => length === 0).length;
  expect(stats).toMatchObject({ objects: all.length, images: 30 - without, without, bad: { count: 0, first: null } });
  const numbers = [...new Set(all.map(({ label }) => label))].sort();
  expect(stats.classes).toEqual(
    numbers.map((label) => ({
      name: String(label),
      objects: all.filter((shape) => shape.label === label).length,
      images: shapes.filter((list) => list.some((shape) => shape.label === label)).length,
    })),
  );
  expect(stats.perImage).toMatchObject({ count: 30, smallest: 0, largest: 4 });
  expect(stats.width).toMatchObject({ count: all.length, smallest: 10, largest: 10 });
  const heights = all.map(({ bbox }) => bbox[3]);
  expect(stats.height).toMatchObject({ smallest: Math.min(...heights), largest: Math.max(...heights) });
});

test('boxes given as fractions of the image are measured in its pixels, and invalid boxes are counted and listed', async () => {
  const stats = await counted({ boxes: { field: 'box.npy', format: 'xyxy', normalized: true } });
  expect(stats).toMatchObject({ objects: all.length, classes: [] });
  expect(stats.width).toMatchObject({ count: all.length, smallest: 10, largest: 10 });
  expect([WIDTH, HEIGHT]).toEqual([64, 48]);
  // Fractions are too small for widths, and corners are in another order.
  const wrong = await counted({ boxes: { field: 'box.npy', format: 'xyxy' }, labels: { field: 'json', path: 'no' } });
  expect(wrong.bad.count).toBe(30);
  expect(wrong.bad.first).toEqual({ key: '000', reason: '"no" of its field "json" is missing' });
  await expect(counted({ boxes: { field: 'bxs' } })).rejects.toThrow(OptionError);
});

test('stats prints the counts of objects', async () => {
  const file = path.join(emptyFolder(), 'annotations.json');
  writeFileSync(
    file,
    JSON.stringify({
      boxes: { field: 'json', path: 'objects.bbox' },
      labels: { field: 'json', path: 'objects.label' },
    }),
  );
  const { stdout, code } = await shardtool('stats', tar, '--annotations', file, '--limit', '2');
  expect(code).toBe(0);
  expect(stdout).toContain(`${all.length} objects on 24 images, 6 images without any`);
  expect(stdout).toContain('and 6 more: --limit N, --json');
  expect(stdout).toMatch(/width of boxes: 10 each/);
});
