import { LabelsError } from '@shardtool/base';
import type { ColumnValue } from '@shardtool/format';
import { shownLocation } from '@shardtool/storage';
import { OBJECT_COUNTS, OBJECTS_FIELD, type ObjectLabels, type OddAnnotation } from '../bucket/objects.js';
import { pathBelow, readTextFile } from './list.js';

/** What of such a file is looked at (COCO data format, "Object Detection" and "Keypoint Detection"). */
interface CocoFile {
  readonly images: readonly { id: number; file_name: string; width?: number; height?: number }[];
  readonly annotations: readonly CocoAnnotation[];
  readonly categories: readonly { id: number; name: string }[];
}
interface CocoAnnotation {
  readonly id?: number;
  readonly image_id: number;
  readonly category_id: number;
  readonly bbox?: unknown;
  readonly area?: number;
  readonly iscrowd?: number;
  readonly segmentation?: unknown;
  readonly keypoints?: unknown;
}

/**
 * Reads a file of COCO's annotations: `file_name` is the path of an image below `source`. Each image gets a field
 * {@link OBJECTS_FIELD} with lists side by side (`boxes` [x, y, width, height], `labels`, `iscrowd`, `area`, `ids`; `segmentation`
 * and `keypoints` where there are any), and columns `image_id` and `boxes`, how many it has. Annotations of unknown images or
 * categories, without a box, without area or wholly outside are left out and named. Throws {@link LabelsError}.
 */
export async function readCoco(given: string, source: string): Promise<ObjectLabels> {
  const location = shownLocation(given);
  const { images, annotations, categories } = parse(location, await readTextFile(given));
  const sorted = categories.toSorted((a, b) => a.id - b.id);
  const numberOf = new Map(sorted.map(({ id }, number) => [id, number]));
  const rowOf = new Map(images.map(({ id }, row) => [id, row]));
  const points = annotations.reduce(
    (most, { keypoints }) => Math.max(most, Array.isArray(keypoints) ? keypoints.length : 0),
    0,
  );
  const odd: OddAnnotation[] = [];
  const found: CocoAnnotation[][] = images.map(() => []);
  for (const annotation of annotations) {
    const row = rowOf.get(annotation.image_id);
    const reason = faultOf(annotation, row === undefined ? undefined : images[row], numberOf);
    const image = images[row ?? -1]?.file_name ?? annotation.image_id;
    if (reason === null) found[row!]!.push(annotation);
    else odd.push({ path: location, annotation: annotation.id ?? null, image, reason });
  }
  // All images have the same lists, so that one without objects has empty ones.
  const absent = {
    ...(annotations.some(({ segmentation }) => segmentation !== undefined) && { segmentation: [] }),
    ...(points > 0 && { keypoints: new Array<number>(points).fill(0) }),
  };
  const columns = new Map<string, readonly ColumnValue[]>([
    ['image_id', images.map(({ id }) => id)],
    [OBJECT_COUNTS, found.map(({ length }) => length)],
  ]);
  return {
    location,
    path: images.map(({ file_name: name }) => pathBelow(source, name, location)),
    line: new Uint32Array(images.length),
    cls: images.map(() => ''),
    columns,
    texts: new Map([[OBJECTS_FIELD, found.map((objects, row) => textOf(images[row]!.id, objects, numberOf, absent))]]),
    classes: sorted.map(({ name }) => name),
    odd,
  };
}

function parse(location: string, text: string): CocoFile {
  const fault = (what: string) =>
    new LabelsError({ path: location }, `${location} is no file of COCO's annotations: ${what}.`);
  let file: Partial<CocoFile>;
  try {
    file = JSON.parse(text) as Partial<CocoFile>;
  } catch (cause) {
    if (cause instanceof SyntaxError) throw fault(`it is not JSON (${cause.message})`);
    throw cause;
  }
  for (const name of ['images', 'annotations', 'categories'] as const) {
    if (!Array.isArray(file?.[name])) throw fault(`it has no list "${name}"`);
  }
  const nameless = file.images!.find(({ file_name: name }) => typeof name !== 'string');
  if (nameless !== undefined) throw fault(`image ${JSON.stringify(nameless.id)} has no file_name`);
  return file as CocoFile;
}

/** Why an annotation is left out; null where it is not. */
function faultOf(
  { category_id: category, bbox }: CocoAnnotation,
  image: CocoFile['images'][number] | undefined,
  numbers: ReadonlyMap<number, number>,
): string | null {
  if (image === undefined) return 'of an unknown image';
  if (!numbers.has(category)) return 'of an unknown category';
  const isBox = Array.isArray(bbox) && bbox.length === 4 && bbox.every((value) => Number.isFinite(value));
  if (!isBox) return 'without a box';
  const [x, y, width, height] = bbox as [number, number, number, number];
  if (width <= 0 || height <= 0) return 'without area';
  const isOutside =
    x + width <= 0 || y + height <= 0 || x >= (image.width ?? Infinity) || y >= (image.height ?? Infinity);
  return isOutside ? 'outside the image' : null;
}

/** What an object has that lacks a segmentation or keypoints, which others have. */
type Absent = { readonly [Name in 'segmentation' | 'keypoints']?: readonly number[] };

function textOf(
  imageId: number,
  objects: readonly CocoAnnotation[],
  numbers: ReadonlyMap<number, number>,
  absent: Absent,
): string {
  const others = (Object.keys(absent) as (keyof Absent)[]).map(
    (name) => [name, objects.map((object) => object[name] ?? absent[name])] as const,
  );
  return JSON.stringify({
    image_id: imageId,
    boxes: objects.map(({ bbox }) => bbox),
    labels: objects.map(({ category_id: category }) => numbers.get(category)!),
    iscrowd: objects.map(({ iscrowd }) => iscrowd ?? 0),
    area: objects.map(({ area }) => area ?? null),
    ids: objects.map(({ id }) => id ?? null),
    ...Object.fromEntries(others),
  });
}
