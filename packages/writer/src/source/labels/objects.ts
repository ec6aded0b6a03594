import type { Labels } from './labels.js';

/** The field with the objects of an image. */
export const OBJECTS_FIELD = 'json';

/** The column with the number of objects of an image. */
export const OBJECT_COUNTS = 'boxes';

/** A skipped annotation and the reason: a line of skipped.jsonl. */
export interface OddAnnotation {
  /** The file that contains it. */
  readonly path: string;
  /** Its id as written in the file, if it has one. */
  readonly annotation?: unknown;
  /** Its line, from 1, if it has no id. */
  readonly line?: number;
  readonly image: unknown;
  readonly reason: string;
}

/** Width and height in pixels. */
export type ImageSize = readonly [width: number, height: number] | null;

/**
 * Annotations as labels of images: the objects as the text field {@link OBJECTS_FIELD}, and their number as the column
 * {@link OBJECT_COUNTS}.
 */
export interface ObjectLabels extends Labels {
  /** Classes of the dataset, which the labels of boxes refer to. */
  readonly classes: readonly string[];
  /**
   * Width and height of each image according to the annotations; null if they do not state it. Absent if none of them
   * does.
   */
  readonly sizes?: readonly ImageSize[] | undefined;
  readonly odd: readonly OddAnnotation[];
}

/** True if the labels contain the objects of images. */
export function hasObjects(labels: Labels | null): labels is ObjectLabels {
  return labels !== null && 'odd' in labels;
}
