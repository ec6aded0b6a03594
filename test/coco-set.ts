import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { probeImage } from '@shardtool/format';
import { emptyFolder } from './datasets.js';

/** Names of categories by their ids, which have gaps as in COCO. */
const CATEGORIES = [
  { id: 7, name: 'truck' },
  { id: 1, name: 'person' },
  { id: 18, name: 'dog' },
];

/** Faults of annotations, by their ids, and how a pack counts each. */
export const ODD: Readonly<Record<number, string>> = {
  900: 'of an unknown image',
  901: 'of an unknown category',
  902: 'without area',
  903: 'outside the image',
  904: 'without a box',
};

/** Photos in a folder `images`, and a COCO annotations file for them: image i has i mod 3 objects; and some odd ones. */
export function cocoSet(samples: number): { readonly images: string; readonly annotations: string } {
  const folder = emptyFolder();
  const images = path.join(folder, 'images');
  mkdirSync(images);
  const photos = readdirSync('examples/photos', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.jpg'))
    .sort()
    .slice(0, samples)
    .map((name) => path.join('examples/photos', name));
  const listed = photos.map((photo, i) => {
    const name = `${String(i).padStart(4, '0')}.jpg`;
    cpSync(photo, path.join(images, name));
    const { width, height } = probeImage(readFileSync(photo));
    return { id: 100 + i, file_name: name, width, height };
  });
  const boxOf = (i: number, n: number) => [10.5 + 20 * n, 20 + i, 40, 30.25 + n];
  const annotations = listed.flatMap(({ id }, i) =>
    Array.from({ length: i % 3 }, (_, n) => {
      const [x, y, width, height] = boxOf(i, n) as [number, number, number, number];
      return {
        id: i * 10 + n,
        image_id: id,
        category_id: CATEGORIES[(i + n) % 3]!.id,
        bbox: [x, y, width, height],
        area: width * height,
        iscrowd: n,
        segmentation: [[x, y, x + width, y, x + width, y + height]],
      };
    }),
  );
  const odd = [
    { id: 900, image_id: 5555, category_id: 1, bbox: [1, 2, 3, 4] },
    { id: 901, image_id: 100, category_id: 99, bbox: [1, 2, 3, 4] },
    { id: 902, image_id: 100, category_id: 1, bbox: [1, 2, 0, 4] },
    { id: 903, image_id: 100, category_id: 1, bbox: [4000, 2, 3, 4] },
    { id: 904, image_id: 100, category_id: 1 },
  ];
  const file = path.join(folder, 'annotations.json');
  writeFileSync(
    file,
    JSON.stringify({ images: listed, annotations: [...annotations, ...odd], categories: CATEGORIES }),
  );
  return { images, annotations: file };
}
