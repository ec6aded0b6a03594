import { OptionError } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';

/** How four numbers say a box: two corners; the left upper one and the size; the middle and the size. */
export type BoxFormat = 'xyxy' | 'xywh' | 'cxcywh';

/** A field (JSON, or an array of NumPy), and where in it: names and dots, through lists: `objects.bbox`; or columns. */
export interface AnnotationSource {
  /** A field, or a column of the index that holds JSON, as lists and structs of Parquet do. */
  readonly field?: string | undefined;
  /** Default: all of the field. Only in JSON. */
  readonly path?: string | undefined;
  /** Columns of the index with a number each, for the one object of an image: `['x', 'y', 'width', 'height']`. Without values there is none. */
  readonly columns?: readonly string[] | undefined;
}

/** Values that are pixels, or with `normalized` parts of the image's width and height. */
interface PlaceSource extends AnnotationSource {
  /** Default false. */
  readonly normalized?: boolean | undefined;
}

/** Where the objects of an image stand. Values are of the image before the transform, turned where it is turned. */
export interface AnnotationOptions {
  /** [n, 4]. `format` is that in the dataset, default `xywh` (COCO's). */
  readonly boxes?: (PlaceSource & { readonly format?: BoxFormat | undefined }) | undefined;
  /** Class numbers [n]. */
  readonly labels?: AnnotationSource | undefined;
  /** [n, count, 2 or 3], or the same numbers in a row. `count` is how many an object has, default 17 (COCO's). */
  readonly keypoints?: (PlaceSource & { readonly count?: number | undefined }) | undefined;
  /** Of each object one polygon, or a list of them: x and y in a row, or in pairs. */
  readonly polygons?: PlaceSource | undefined;
  /** The format of `batch.boxes`. Default `xyxy`. */
  readonly boxFormat?: BoxFormat | undefined;
  /**
   * Most objects of an image; one with more is a bad sample. Default: as many as there are, where `pack --coco` or `--yolo`
   * counted them, else 500.
   */
  readonly maxBoxes?: number | undefined;
  /** Most corners of polygons of an image, all together. Default 25,000, or 50 for each of `maxBoxes` where that is more. */
  readonly maxPoints?: number | undefined;
}

const format = z.enum(['xyxy', 'xywh', 'cxcywh']);
const name = z.string().min(1);
const source = { field: name.optional(), path: name.optional(), columns: z.array(name).min(1).optional() };
const place = { ...source, normalized: z.boolean().default(false) };
const count = z.number().int().min(1);
/** Of a box, and of a class number. */
const COLUMNS = { boxes: 4, labels: 1 } as const;
const schema = z.strictObject({
  boxes: z.strictObject({ ...place, format: format.default('xywh') }).optional(),
  labels: z.strictObject(source).optional(),
  keypoints: z.strictObject({ ...place, count: count.max(1000).default(17) }).optional(),
  polygons: z.strictObject(place).optional(),
  boxFormat: format.default('xyxy'),
  maxBoxes: count.max(100_000).optional(),
  maxPoints: count.max(10_000_000).optional(),
});

/** {@link AnnotationOptions} with their defaults: plain data, which goes to workers. */
export type CheckedAnnotations = Omit<z.output<typeof schema>, 'maxBoxes' | 'maxPoints'> & {
  readonly maxBoxes: number;
  readonly maxPoints: number;
};

/** Where `pack` has put the objects that it counted. */
const COUNTED = { field: 'json', paths: ['boxes', 'labels', 'keypoints', 'segmentation'] };
const DEFAULT_MOST = 500;
const POINTS_EACH = 50;

/** Fills in the defaults; `counted` are the most objects of an image that was packed. Throws {@link OptionError}. */
export function checkAnnotations(options: AnnotationOptions, counted?: number): CheckedAnnotations {
  const checked = parseShape(schema, options, ({ where, what }) =>
    notRight(where === '' ? 'annotations' : `annotations.${where}`, `it ${what}`),
  );
  checkSources(checked);
  const { boxes, labels, keypoints, polygons } = checked;
  if (boxes === undefined && keypoints === undefined && polygons === undefined) {
    throw new OptionError(
      {},
      `The loader's option annotations names ${labels === undefined ? 'nothing' : 'labels and nothing that they are of'}: give ` +
        'boxes, keypoints or polygons.',
    );
  }
  const isCounted = [boxes, labels, keypoints, polygons].every(
    (one) => one === undefined || (one.field === COUNTED.field && COUNTED.paths.includes(one.path ?? '')),
  );
  const most = isCounted && counted !== undefined ? Math.max(1, counted) : DEFAULT_MOST;
  const maxBoxes = checked.maxBoxes ?? most;
  return {
    ...checked,
    maxBoxes,
    maxPoints: checked.maxPoints ?? POINTS_EACH * Math.max(DEFAULT_MOST, maxBoxes),
  };
}

function notRight(where: string, message: string): OptionError {
  return new OptionError({}, `The loader's option ${where} is not right: ${message}. docs/detection.md has examples.`);
}

function checkSources(options: z.output<typeof schema>): void {
  for (const name of ['boxes', 'labels', 'keypoints', 'polygons'] as const) {
    const given = options[name];
    if (given === undefined) continue;
    const { field, path, columns } = given;
    const where = `annotations.${name}`;
    if ((field === undefined) === (columns === undefined)) throw notRight(where, 'it takes either field or columns');
    if (columns === undefined) continue;
    if (path !== undefined) throw notRight(where, 'a path leads into a field, and columns have none');
    if (name === 'polygons')
      throw notRight(where, 'polygons have no fixed number of columns: name one with JSON as field');
    if (name === 'keypoints') continue;
    const wanted = COLUMNS[name];
    if (columns.length !== wanted) {
      throw notRight(where, `it takes ${wanted === 1 ? 'one column' : `${wanted} columns`} and not ${columns.length}`);
    }
  }
}
