import { readFile, readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { countOf, FileNotFoundError, LabelsError, reasonOf } from '@shardtool/base';
import { isImageExtension } from '@shardtool/format';
import { isRemote, readWhole, type StorageOptions, shownLocation } from '@shardtool/storage';
import { SourceError } from '../../errors.js';
import type { InFlight } from '../ahead/in-flight.js';
import type { SourceFiles } from '../source-files.js';
import { readLines, readTextFile } from '../text-file.js';
import { OBJECT_COUNTS, OBJECTS_FIELD, type ObjectLabels, type OddAnnotation } from './objects.js';

/** Class names that the label files refer to, and the number of keypoints per object if the dataset has keypoints. */
export interface YoloClasses {
  /** The file that they were read from, for messages. */
  readonly location: string;
  readonly names: readonly string[];
  /** `kpt_shape`: number of keypoints per object, and of values per keypoint (2 or 3). */
  readonly keypoints: readonly [number, number] | null;
}

/**
 * Reads `data.yaml` (`names`, `kpt_shape`), or a text file with one class name per line. Throws {@link LabelsError}.
 */
export async function readYoloClasses(given: string, storage?: StorageOptions): Promise<YoloClasses> {
  const location = shownLocation(given);
  if (!/\.ya?ml$/i.test(given)) return { location, names: await readLines(given, storage), keypoints: null };
  const { parse } = await import('yaml');
  const fault = (what: string, cause?: unknown) =>
    new LabelsError({ path: location }, `${location} has no valid list of classes: ${what}.`, { cause });
  const text = await readTextFile(given, storage);
  let file: { readonly names?: unknown; readonly nc?: unknown; readonly kpt_shape?: unknown } | null;
  try {
    file = parse(text, { logLevel: 'error' }) as typeof file;
  } catch (cause) {
    const [first] = (cause as Error).message.split('\n');
    const isDeep = first!.startsWith('Maximum call stack');
    throw fault(isDeep ? 'it is nested too deeply' : `it is not YAML (${first!.replace(/:$/, '')})`, cause);
  }
  const { names: listed, nc, kpt_shape: shape } = file ?? {};
  if (typeof listed !== 'object' || listed === null) throw fault('it has no list "names"');
  const names = (Array.isArray(listed) ? listed : inOrder(listed, fault)).map(String);
  const twice = names.find((name, number) => names.indexOf(name) !== number);
  if (twice !== undefined) throw fault(`it lists the class "${twice}" twice`);
  if (typeof nc === 'number' && nc !== names.length) throw fault(`"nc" is ${nc}, but there are ${names.length} names`);
  if (shape === undefined) return { location, names, keypoints: null };
  const [count, each] = Array.isArray(shape) ? (shape as unknown[]) : [];
  if (!Number.isInteger(count) || (count as number) < 1 || (each !== 2 && each !== 3))
    throw fault('"kpt_shape" must be the number of keypoints and of values for each (2 or 3), such as [17, 3]');
  return { location, names, keypoints: [count as number, each] };
}

/** Returns the names in the order of their numbers, from `{0: person, 1: dog}`. */
function inOrder(names: object, fault: (what: string) => LabelsError): unknown[] {
  const entries = new Map(Object.entries(names));
  return Array.from({ length: entries.size }, (_, number) => {
    const name: unknown = entries.get(String(number));
    if (name === undefined)
      throw fault(`"names" has ${countOf(entries.size, 'class', 'classes')} but none with the number ${number}`);
    return name;
  });
}

/** Reads a label file by its full path; null if it does not exist. */
type ReadLabels = (path: string) => Promise<string | null> | string | null;

/**
 * Reads the label files of the images below `root`, which ends with "/". The label file has the image's path with the
 * last folder `images` replaced by `labels` and the extension `txt`; without such a folder it is next to the image.
 * Each image gets a field {@link OBJECTS_FIELD} with parallel lists: `boxes` [center x, center y, width, height] as
 * fractions of the image's size, `labels`, and `segmentation` and `keypoints` if lines have them. An image without a
 * label file has no objects. Invalid lines are skipped and reported. `own` are the label files among the source files.
 * Throws {@link LabelsError} if no image has a label file.
 */
export async function readYolo(
  { location, names, keypoints }: YoloClasses,
  root: string,
  files: SourceFiles,
  flight: InFlight | null,
  storage?: StorageOptions,
): Promise<{ readonly labels: ObjectLabels; readonly own: ReadonlySet<number> }> {
  const images = [...imagesIn(files)];
  const read = readerOf(root, flight, storage);
  const odd: OddAnnotation[] = [];
  const found: YoloObject[][] = [];
  const own = new Set<number>();
  const reader = files.reader();
  let labelled = 0;
  for (let from = 0; from < images.length; from += AT_ONCE) {
    const some = images.slice(from, from + AT_ONCE);
    const texts = await Promise.all(some.map((image) => read(labelPathOf(root + image))));
    await setImmediate();
    some.forEach((image, i) => {
      const text = texts[i]!;
      const objects: YoloObject[] = [];
      found.push(objects);
      if (text === null) return;
      labelled++;
      const path = labelPathOf(root + image);
      const below = path.startsWith(root) ? path.slice(root.length) : shownLocation(path);
      const file = reader.find(below);
      if (file !== -1) own.add(file);
      const seen = new Set<string>();
      text.split('\n').forEach((line, number) => {
        const numbers = line.trim();
        if (numbers === '') return;
        const object = seen.has(numbers) ? 'repeated' : objectOf(numbers, names.length, keypoints);
        seen.add(numbers);
        if (typeof object !== 'string') objects.push(object);
        else odd.push({ path: below, line: number + 1, image, reason: object });
      });
    });
  }
  if (labelled === 0 && images.length > 0) {
    const looked = shownLocation(labelPathOf(root + images[0]!));
    throw new LabelsError(
      { path: looked },
      `No image below ${shownLocation(root)} has a label file. For ${images[0]} shardtool looked for ${looked}: put images in a ` +
        'folder "images" and labels in a folder "labels" next to it, or both in one folder.',
    );
  }
  const hasPolygons = found.some((objects) => objects.some(({ polygon }) => polygon !== null));
  const labels: ObjectLabels = {
    location,
    path: images,
    line: new Uint32Array(images.length),
    cls: images.map(() => ''),
    columns: new Map([[OBJECT_COUNTS, found.map(({ length }) => length)]]),
    texts: new Map([[OBJECTS_FIELD, found.map((objects) => textOf(objects, hasPolygons, keypoints !== null))]]),
    classes: names,
    odd,
  };
  return { labels, own };
}

/** Number of concurrent requests for remote label files. */
const AT_ONCE = 128;

function* imagesIn(files: SourceFiles): Generator<string> {
  const reader = files.reader();
  for (let file = 0; file < files.count; file++) {
    const path = reader.path(file);
    if (isImageExtension(path.slice(path.lastIndexOf('.') + 1).toLowerCase())) yield path;
  }
}

/** Path of the label file of an image (Ultralytics docs, "Object Detection Datasets Overview"). */
function labelPathOf(image: string): string {
  const stem = image.slice(0, image.lastIndexOf('.'));
  const at = stem.lastIndexOf('/images/');
  return at === -1 ? `${stem}.txt` : `${stem.slice(0, at)}/labels/${stem.slice(at + '/images/'.length)}.txt`;
}

function readerOf(root: string, flight: InFlight | null, storage: StorageOptions | undefined): ReadLabels {
  if (isRemote(root)) {
    return async (path) => {
      try {
        return Buffer.from(await readWhole(path, storage)).toString('utf8');
      } catch (error) {
        if (error instanceof FileNotFoundError) return null;
        throw error;
      }
    };
  }
  const failed = (path: string, error: NodeJS.ErrnoException): null => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    if (error.code === undefined) throw error;
    throw new SourceError({ path }, `The label file ${path} cannot be read: ${reasonOf(error)}.`, { cause: error });
  };
  if (flight === null) {
    return (path) => {
      try {
        return readFileSync(path, 'utf8');
      } catch (error) {
        return failed(path, error as NodeJS.ErrnoException);
      }
    };
  }
  return (path) =>
    flight.run<string>(path, (done) => readFile(path, 'utf8', done)).catch((error) => failed(path, error));
}

/** An object, with coordinates as fractions of the image's size. */
interface YoloObject {
  readonly cls: number;
  /** Center x, center y, width, height. */
  readonly box: readonly number[];
  readonly polygon: readonly number[] | null;
  readonly points: readonly number[] | null;
}

/** Number of values of a box line: the class, x, y, width and height. */
const BOX_NUMBERS = 5;
/** Minimum number of values of a polygon line: the class and three corners. */
const LEAST_POLYGON = 7;
/** Tolerance for rounded coordinates outside the image. */
const ROUNDED = 0.01;

/** Returns the object of a line, or the reason why it is invalid. */
function objectOf(line: string, classes: number, shape: YoloClasses['keypoints']): YoloObject | string {
  const words = line.split(/\s+/);
  const numbers = words.map((word) => (NUMBER.test(word) ? Number(word) : Number.NaN));
  if (!numbers.every(Number.isFinite)) return 'with a value that is not a number';
  const [cls, ...values] = numbers as [number, ...number[]];
  if (!Number.isInteger(cls) || cls < 0 || cls >= classes) return 'of an unknown class';
  const points = shape === null ? 0 : shape[0] * shape[1];
  const isBox = numbers.length === BOX_NUMBERS + points;
  const isPolygon = shape === null && numbers.length >= LEAST_POLYGON && numbers.length % 2 === 1;
  if (!isBox && !isPolygon) return 'with a wrong number of values';
  const box = isBox ? values.slice(0, 4) : around(values);
  const places = isBox ? box : values;
  if (places.some((value) => value < -ROUNDED || value > 1 + ROUNDED))
    return 'outside the image, or not in fractions of its size';
  if (box[2]! <= 0 || box[3]! <= 0) return 'without area';
  return {
    cls,
    box,
    polygon: isPolygon ? values : null,
    points: points === 0 ? null : withSeen(values.slice(4), shape![1]),
  };
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Returns the bounding box of a polygon. */
function around(corners: readonly number[]): number[] {
  const xs = corners.filter((_, i) => i % 2 === 0);
  const ys = corners.filter((_, i) => i % 2 === 1);
  const [left, top, right, bottom] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  return [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top];
}

/** Returns keypoints with three values each. If lines have only two, a keypoint at (0, 0) is not labelled. */
function withSeen(points: readonly number[], each: number): readonly number[] {
  if (each === 3) return points;
  return points.flatMap((x, i) => (i % 2 === 1 ? [] : [x, points[i + 1]!, x === 0 && points[i + 1] === 0 ? 0 : 2]));
}

function textOf(objects: readonly YoloObject[], hasPolygons: boolean, hasKeypoints: boolean): string {
  return JSON.stringify({
    boxes: objects.map(({ box }) => box),
    labels: objects.map(({ cls }) => cls),
    ...(hasPolygons && { segmentation: objects.map(({ polygon }) => (polygon === null ? [] : [polygon])) }),
    ...(hasKeypoints && { keypoints: objects.map(({ points }) => points) }),
  });
}
