/** What lies on the images of a dataset, and where it stands: the option `annotations` of a loader. */
import { OptionError } from '@shardtool/format';
import { z } from 'zod';

/** How four numbers say a box: two corners; the left upper one and the size; the middle and the size. */
export type BoxFormat = 'xyxy' | 'xywh' | 'cxcywh';

/** A field (JSON, or an array of NumPy), and where in it: names and dots, through lists: `objects.bbox`. */
export interface AnnotationSource {
  readonly field: string;
  /** Default: all of the field. Only in JSON. */
  readonly path?: string | undefined;
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
  /** Most objects of an image; one with more is a bad sample. Default 500. */
  readonly maxBoxes?: number | undefined;
  /** Most corners of polygons of an image, all together. Default 50 for each of `maxBoxes`. */
  readonly maxPoints?: number | undefined;
}

const format = z.enum(['xyxy', 'xywh', 'cxcywh']);
const source = { field: z.string().min(1), path: z.string().min(1).optional() };
const place = { ...source, normalized: z.boolean().default(false) };
const count = z.number().int().min(1);
const schema = z.strictObject({
  boxes: z.strictObject({ ...place, format: format.default('xywh') }).optional(),
  labels: z.strictObject(source).optional(),
  keypoints: z.strictObject({ ...place, count: count.max(1000).default(17) }).optional(),
  polygons: z.strictObject(place).optional(),
  boxFormat: format.default('xyxy'),
  maxBoxes: count.max(100_000).default(500),
  maxPoints: count.max(10_000_000).optional(),
});

/** {@link AnnotationOptions} with their defaults: plain data, which goes to workers. */
export type CheckedAnnotations = Omit<z.output<typeof schema>, 'maxPoints'> & { readonly maxPoints: number };

/** Fills in the defaults. Throws {@link OptionError}. */
export function checkAnnotations(options: AnnotationOptions): CheckedAnnotations {
  const result = schema.safeParse(options);
  if (!result.success) {
    const { path, message } = result.error.issues[0]!;
    const where = ['annotations', ...path].join('.');
    throw new OptionError({}, `The loader's option ${where} is not right: ${message}. docs/detection.md has examples.`);
  }
  const { boxes, labels, keypoints, polygons, maxBoxes } = result.data;
  if (boxes === undefined && keypoints === undefined && polygons === undefined) {
    throw new OptionError(
      {},
      `The loader's option annotations names ${labels === undefined ? 'nothing' : 'labels and nothing that they are of'}: give ` +
        'boxes, keypoints or polygons.',
    );
  }
  return { ...result.data, maxPoints: result.data.maxPoints ?? 50 * maxBoxes };
}

/** The fields that are read for it. */
export function annotationFields({ boxes, labels, keypoints, polygons }: CheckedAnnotations): string[] {
  return [...new Set([boxes, labels, keypoints, polygons].flatMap((one) => (one === undefined ? [] : [one.field])))];
}
