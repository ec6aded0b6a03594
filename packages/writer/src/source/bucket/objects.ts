import type { Labels } from '../labels/labels.js';

/** The field that has the objects of an image. */
export const OBJECTS_FIELD = 'json';

/** The column that says how many an image has. */
export const OBJECT_COUNTS = 'boxes';

/** An annotation that was left out, and why: a line of skipped.jsonl. */
export interface OddAnnotation {
  /** The file that it stands in. */
  readonly path: string;
  /** Its own id, as it is written, where it has one. */
  readonly annotation?: unknown;
  /** Its line, from 1, where it has no id. */
  readonly line?: number;
  readonly image: unknown;
  readonly reason: string;
}

/** Width and height in pixels. */
export type ImageSize = readonly [width: number, height: number] | null;

/** What annotations say of the images: their objects as the text {@link OBJECTS_FIELD}, and how many each has as the column {@link OBJECT_COUNTS}. */
export interface ObjectLabels extends Labels {
  /** The classes of the dataset, which the labels of boxes count in. */
  readonly classes: readonly string[];
  /** Width and height of each image as the annotations have them; null where they do not say. Absent where none of them does. */
  readonly sizes?: readonly ImageSize[] | undefined;
  readonly odd: readonly OddAnnotation[];
}

/** Whether a table has the objects of images. */
export function hasObjects(labels: Labels | null): labels is ObjectLabels {
  return labels !== null && 'odd' in labels;
}
