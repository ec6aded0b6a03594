import { compareCodePoints, LabelsError } from '@shardtool/base';
import { type ColumnValue, jsonText, parseJson, shownValue } from '@shardtool/format';
import { type StorageOptions, shownLocation } from '@shardtool/storage';
import { readTextFile } from '../text-file.js';
import { pathBelow } from './list.js';
import { OBJECT_COUNTS, OBJECTS_FIELD, type ObjectLabels, type OddAnnotation } from './objects.js';

/** Id of an image, a category or an annotation. The format requires numbers, but some tools write text. */
type Id = number | string;

/** The parts of a COCO file that are read (COCO data format, "Object Detection" and "Keypoint Detection"). */
interface CocoFile {
  readonly images: readonly CocoImage[];
  readonly annotations: readonly CocoAnnotation[];
  readonly categories: readonly { readonly id: Id; readonly name: string }[];
}
interface CocoImage {
  readonly id: Id;
  readonly file_name: string;
  readonly width?: unknown;
  readonly height?: unknown;
}
interface CocoAnnotation {
  readonly id?: unknown;
  readonly image_id?: unknown;
  readonly category_id?: unknown;
  readonly bbox?: unknown;
  readonly area?: unknown;
  readonly iscrowd?: unknown;
  readonly segmentation?: unknown;
  readonly keypoints?: unknown;
}

/**
 * Reads a file of COCO annotations, in which `file_name` is the path of an image below `source`. Each image gets a
 * field {@link OBJECTS_FIELD} with parallel lists: `boxes` [x, y, width, height], `labels`, `iscrowd`, `area`, `ids`,
 * and `segmentation` and `keypoints` if there are any. It also gets the columns `image_id` and `boxes`, the number of
 * its boxes. Annotations of unknown images or categories, without a box, without area or completely outside the image
 * are skipped and reported. Throws {@link LabelsError}.
 */
export async function readCoco(given: string, source: string, storage?: StorageOptions): Promise<ObjectLabels> {
  const location = shownLocation(given);
  const file = parse(location, await readTextFile(given, storage));
  const { annotations } = file;
  const images = file.images.map((image) => ({ ...image, path: pathBelow(source, image.file_name, location) }));
  refuseTwice(
    location,
    images,
    ({ path }) => path,
    ([one, other]) => `images ${idText(one)} and ${idText(other)} are both the file ${one.path}`,
  );
  const sorted = file.categories.toSorted(byId);
  const numberOf = new Map<unknown, number>(sorted.map(({ id }, number) => [id, number]));
  const rowOf = new Map<unknown, number>(images.map(({ id }, row) => [id, row]));
  const points = annotations.reduce(
    (max, { keypoints }) => Math.max(max, Array.isArray(keypoints) ? keypoints.length : 0),
    0,
  );
  const odd: OddAnnotation[] = [];
  const found: CocoAnnotation[][] = images.map(() => []);
  for (const annotation of annotations) {
    const row = rowOf.get(annotation.image_id);
    const reason = faultOf(annotation, row === undefined ? undefined : images[row], numberOf);
    const image = images[row ?? -1]?.file_name ?? plainId(annotation.image_id);
    if (reason === null) found[row!]!.push(annotation);
    else odd.push({ path: location, annotation: plainId(annotation.id), image, reason });
  }
  // All images have the same lists; an image without objects has empty ones.
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
    path: images.map(({ path }) => path),
    line: new Uint32Array(images.length),
    cls: images.map(() => ''),
    columns,
    texts: new Map([[OBJECTS_FIELD, found.map((objects, row) => textOf(images[row]!.id, objects, numberOf, absent))]]),
    sizes: images.map(sizeOf),
    classes: sorted.map(({ name }) => name),
    odd,
  };
}

function parse(location: string, text: string): CocoFile {
  const fault = (what: string, cause?: unknown) =>
    new LabelsError({ path: location }, `${location} is not a valid COCO annotations file: ${what}.`, { cause });
  let file: Partial<Record<keyof CocoFile, unknown>> | null;
  try {
    file = parseJson(text) as typeof file;
  } catch (cause) {
    if (cause instanceof SyntaxError) throw fault(`it is not valid JSON (${cause.message})`, cause);
    throw cause;
  }
  const listOf = (name: keyof CocoFile): readonly Record<string, unknown>[] => {
    const list: unknown = file?.[name];
    if (!Array.isArray(list)) throw fault(`it has no list "${name}"`);
    const odd = list.findIndex((item) => typeof item !== 'object' || item === null || Array.isArray(item));
    if (odd !== -1) throw fault(`${name}[${odd}] is ${shownValue(list[odd])}, not an object`);
    return list;
  };
  const [images, annotations, categories] = [listOf('images'), listOf('annotations'), listOf('categories')];
  for (const image of images) {
    if (typeof image.file_name !== 'string') throw fault(`image ${idText(image)} has no file_name`);
  }
  const named = categories.map((category) => {
    const { name } = category;
    if ((typeof name !== 'string' && typeof name !== 'number') || name === '')
      throw fault(`category ${idText(category)} has no name`);
    return { id: category.id, name: String(name) };
  });
  checkIds(location, 'image', 'images', images, ({ file_name: name }) => String(name));
  checkIds(location, 'category', 'categories', named, ({ name }) => name);
  const large = annotations.find(({ id }) => typeof id === 'bigint');
  if (large !== undefined) throw tooLarge(location, `annotation ${idText(large)}`);
  return { images, annotations, categories: named } as unknown as CocoFile;
}

interface WithId {
  readonly id?: unknown;
}

/** Throws {@link LabelsError} for missing ids and for ids that two items share, and names the items. */
function checkIds<Item extends WithId>(
  location: string,
  one: string,
  many: string,
  items: readonly Item[],
  nameOf: (item: Item) => string,
): void {
  const shown = (item: Item) => `"${nameOf(item)}"`;
  for (const item of items) {
    if (typeof item.id === 'bigint')
      throw tooLarge(location, `the ${one} ${shown(item)} has the id ${item.id}, and it`);
    if (Number.isFinite(item.id) || typeof item.id === 'string') continue;
    const message = `${location}: the ${one} ${shown(item)} has no id; give each its own number.`;
    throw new LabelsError({ path: location }, message);
  }
  refuseTwice(
    location,
    items,
    ({ id }) => id,
    ([a, b]) =>
      `the ${many} ${shown(a)} and ${shown(b)} both have the id ${idText(a)}, so it is unclear which of them an annotation refers to`,
  );
}

function refuseTwice<Item>(
  location: string,
  items: readonly Item[],
  keyOf: (item: Item) => unknown,
  describe: (two: readonly [Item, Item]) => string,
): void {
  const seen = new Map<unknown, Item>();
  for (const item of items) {
    const first = seen.get(keyOf(item));
    if (first !== undefined)
      throw new LabelsError({ path: location }, `${location}: ${describe([first, item])}; correct one of them.`);
    seen.set(keyOf(item), item);
  }
}

/** JavaScript rounds numbers above this, so readers of the samples would confuse ids. */
function tooLarge(location: string, what: string): LabelsError {
  const message = `${location}: ${what} is above 2^53 - 1 (${Number.MAX_SAFE_INTEGER}), where different ids can become equal; renumber them, or write ids as text.`;
  return new LabelsError({ path: location }, message);
}

function idText({ id }: WithId): string {
  return shownValue(id);
}

/** An id for a list of skipped annotations: JSON has no bigints. */
function plainId(id: unknown): unknown {
  return typeof id === 'bigint' ? String(id) : (id ?? null);
}

/** Sorts numbers first, then texts. */
function byId({ id: a }: { readonly id: Id }, { id: b }: { readonly id: Id }): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return compareCodePoints(a, b);
  return typeof a === 'number' ? -1 : 1;
}

/** Null if the file does not state it. */
function sizeOf({ width, height }: CocoImage): readonly [number, number] | null {
  const isSize = (value: unknown) => typeof value === 'number' && value > 0;
  return isSize(width) && isSize(height) ? [width as number, height as number] : null;
}

/** Returns why an annotation is skipped; null if it is not. */
function faultOf(
  { category_id: category, bbox }: CocoAnnotation,
  image: CocoImage | undefined,
  numbers: ReadonlyMap<unknown, number>,
): string | null {
  if (image === undefined) return 'of an unknown image';
  if (!numbers.has(category)) return 'of an unknown category';
  const isBox = Array.isArray(bbox) && bbox.length === 4 && bbox.every((value) => Number.isFinite(value));
  if (!isBox) return 'without a box';
  const [x, y, width, height] = bbox as [number, number, number, number];
  if (width <= 0 || height <= 0) return 'without area';
  const [imageWidth, imageHeight] = sizeOf(image) ?? [Infinity, Infinity];
  const isOutside = x + width <= 0 || y + height <= 0 || x >= imageWidth || y >= imageHeight;
  return isOutside ? 'outside the image' : null;
}

/** Values for objects without a segmentation or keypoints, if other objects have them. */
type Absent = { readonly [Name in 'segmentation' | 'keypoints']?: readonly number[] };

function textOf(
  imageId: Id,
  objects: readonly CocoAnnotation[],
  numbers: ReadonlyMap<unknown, number>,
  absent: Absent,
): string {
  const others = (Object.keys(absent) as (keyof Absent)[]).map(
    (name) => [name, objects.map((object) => object[name] ?? absent[name])] as const,
  );
  return jsonText({
    image_id: imageId,
    boxes: objects.map(({ bbox }) => bbox),
    labels: objects.map(({ category_id: category }) => numbers.get(category)!),
    iscrowd: objects.map(({ iscrowd }) => iscrowd ?? 0),
    area: objects.map(({ area }) => area ?? null),
    ids: objects.map(({ id }) => id ?? null),
    ...Object.fromEntries(others),
  });
}
