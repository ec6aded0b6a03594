import { OptionError, optionName, sentence } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';

/** Format of a box: `xyxy` is two corners, `xywh` the top left corner and the size, `cxcywh` the center and the size. */
export type BoxFormat = 'xyxy' | 'xywh' | 'cxcywh';

/** The source of annotations: a field (JSON or a NumPy array) with a path in it such as `objects.bbox`, or columns of the index. */
export interface AnnotationSource {
  /** A field, or a column of the index that holds JSON, such as a list or struct of Parquet. */
  readonly field?: string | undefined;
  /** Path of names separated by dots, only in JSON. It also leads through lists. Default: the whole field. */
  readonly path?: string | undefined;
  /** Columns of the index with one number each, for images with one object: `['x', 'y', 'width', 'height']`. Without values there is no object. */
  readonly columns?: readonly string[] | undefined;
}

/** The source of coordinates. */
interface CoordinateSource extends AnnotationSource {
  /** Coordinates are fractions of the image's width and height instead of pixels. Default: false. */
  readonly normalized?: boolean | undefined;
}

/**
 * The option `annotations`: where the objects of an image are stored. Coordinates refer to the image before the transform, after its
 * EXIF orientation if that is applied.
 */
export interface AnnotationOptions {
  /** Boxes [n, 4]. `format` is the format in the dataset. Default: `xywh`, as in COCO. */
  readonly boxes?: (CoordinateSource & { readonly format?: BoxFormat | undefined }) | undefined;
  /** Class numbers [n]. */
  readonly labels?: AnnotationSource | undefined;
  /** Keypoints [n, count, 2 or 3], or the same numbers as flat lists. `count` is the number per object. Default: 17, as in COCO. */
  readonly keypoints?: (CoordinateSource & { readonly count?: number | undefined }) | undefined;
  /** For each object one polygon or a list of polygons. A polygon is a flat list of x and y, or a list of pairs. */
  readonly polygons?: CoordinateSource | undefined;
  /** Format of `batch.boxes`. Default: `xyxy`. */
  readonly boxFormat?: BoxFormat | undefined;
  /**
   * Largest number of objects in an image. An image with more is a bad sample. Default: the largest number in the dataset if `pack
   * --coco` or `--yolo` counted them. Otherwise 500.
   */
  readonly maxBoxes?: number | undefined;
  /** Largest number of polygon corners in an image, in total. Default: 25,000, or 50 times `maxBoxes` if that is more. */
  readonly maxPoints?: number | undefined;
}

const format = z.enum(['xyxy', 'xywh', 'cxcywh']);
const name = z.string().min(1);
const source = { field: name.optional(), path: name.optional(), columns: z.array(name).min(1).optional() };
const coordinates = { ...source, normalized: z.boolean().default(false) };
const count = z.number().int().min(1);
/** Number of columns for a box and for a class number. */
const COLUMNS = { boxes: 4, labels: 1 } as const;
const schema = z.strictObject({
  boxes: z.strictObject({ ...coordinates, format: format.default('xywh') }).optional(),
  labels: z.strictObject(source).optional(),
  keypoints: z.strictObject({ ...coordinates, count: count.max(1000).default(17) }).optional(),
  polygons: z.strictObject(coordinates).optional(),
  boxFormat: format.default('xyxy'),
  maxBoxes: count.max(100_000).optional(),
  maxPoints: count.max(10_000_000).optional(),
});

/** {@link AnnotationOptions} with defaults filled in: plain data that can be sent to workers. */
export type CheckedAnnotations = Omit<z.output<typeof schema>, 'maxBoxes' | 'maxPoints'> & {
  readonly maxBoxes: number;
  readonly maxPoints: number;
  /** Largest number of images whose objects one row of a batch may have. */
  readonly imagesPerRow: number;
};

/** The field and paths where `pack` stores the objects that it counts. */
const COUNTED = { field: 'json', paths: ['boxes', 'labels', 'keypoints', 'segmentation'] };
const DEFAULT_MAX_BOXES = 500;
const POINTS_EACH = 50;

/** Checks the option and fills in defaults. `counted` is the largest number of objects in an image, as `pack` counted it. Throws {@link OptionError}. */
export function checkAnnotations(options: AnnotationOptions, counted?: number): CheckedAnnotations {
  const checked = parseShape(schema, options, ({ where, what }) =>
    invalidOption(where === '' ? 'annotations' : `annotations.${where}`, `it ${what}`),
  );
  checkSources(checked);
  const { boxes, labels, keypoints, polygons } = checked;
  if (boxes === undefined && keypoints === undefined && polygons === undefined) {
    throw new OptionError(
      {},
      sentence`The loader's option ${optionName('annotations')} contains ${labels === undefined ? 'no field' : 'only labels'}: add boxes, keypoints or polygons.`,
    );
  }
  const isCounted = [boxes, labels, keypoints, polygons].every(
    (source) => source === undefined || (source.field === COUNTED.field && COUNTED.paths.includes(source.path ?? '')),
  );
  const defaultMaxBoxes = isCounted && counted !== undefined ? Math.max(1, counted) : DEFAULT_MAX_BOXES;
  const maxBoxes = checked.maxBoxes ?? defaultMaxBoxes;
  return {
    ...checked,
    maxBoxes,
    maxPoints: checked.maxPoints ?? POINTS_EACH * Math.max(DEFAULT_MAX_BOXES, maxBoxes),
    imagesPerRow: 1,
  };
}

function invalidOption(where: string, message: string): OptionError {
  return new OptionError(
    {},
    `The loader's option ${where} is invalid: ${message}. See docs/detection.md for examples.`,
  );
}

function checkSources(options: z.output<typeof schema>): void {
  for (const name of ['boxes', 'labels', 'keypoints', 'polygons'] as const) {
    const given = options[name];
    if (given === undefined) continue;
    const { field, path, columns } = given;
    const where = `annotations.${name}`;
    if ((field === undefined) === (columns === undefined)) throw invalidOption(where, 'set either field or columns');
    if (columns === undefined) continue;
    if (path !== undefined) throw invalidOption(where, 'path needs field and cannot be combined with columns');
    if (name === 'polygons')
      throw invalidOption(where, 'polygons cannot be read from columns of numbers: set field to a column with JSON');
    if (name === 'keypoints') continue;
    const wanted = COLUMNS[name];
    if (columns.length !== wanted) {
      throw invalidOption(
        where,
        `it needs ${wanted === 1 ? 'one column' : `${wanted} columns`}, not ${columns.length}`,
      );
    }
  }
}
