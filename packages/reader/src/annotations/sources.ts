import type { AnnotationSource, CheckedAnnotations } from './options.js';

/** The sources that are asked for. */
export function annotationSources({ boxes, labels, keypoints, polygons }: CheckedAnnotations): AnnotationSource[] {
  return [boxes, labels, keypoints, polygons].filter((one) => one !== undefined);
}

/** What a source is called among a sample's bytes. */
export function nameOfSource({ field, columns }: AnnotationSource): string {
  return field ?? columns!.join(', ');
}
