import type { AnnotationSource, CheckedAnnotations } from './options.js';

/** The sources that the option `annotations` names. */
export function annotationSources({ boxes, labels, keypoints, polygons }: CheckedAnnotations): AnnotationSource[] {
  return [boxes, labels, keypoints, polygons].filter((source) => source !== undefined);
}

/** The name of a source: its field, or the list of its columns. */
export function nameOfSource({ field, columns }: AnnotationSource): string {
  return field ?? columns!.join(', ');
}
