import { OptionError, SampleDecodeError } from '@shardtool/base';
import {
  type AnnotationOptions,
  type AnnotationSource,
  annotationSources,
  checkAnnotations,
  columnsText,
  type GivenAnnotations,
  nameOfSource,
  readAnnotations,
  type Sample,
} from '@shardtool/reader';
import type { DrawnObject } from './protocol.js';

type AnnotatedSample = Pick<Sample, 'fields' | 'columns'>;

/** Common forms of annotations in JSON, for datasets without `annotations`: that of `pack --coco`, and two others. */
const USUAL: readonly { readonly boxes: string; readonly labels: string; readonly polygons: string }[] = [
  { boxes: 'boxes', labels: 'labels', polygons: 'segmentation' },
  { boxes: 'objects.bbox', labels: 'objects.category_id', polygons: 'objects.segmentation' },
  { boxes: 'annotations.bbox', labels: 'annotations.category_id', polygons: 'annotations.segmentation' },
];

/**
 * Returns the objects of a sample from the source `given`, or else from a common one. Returns null if there are none.
 * Throws {@link SampleDecodeError} if the source that was given is invalid for this sample.
 */
export function objectsOf(sample: AnnotatedSample, given: AnnotationOptions | undefined): GivenAnnotations | null {
  if (given !== undefined) return objectsAt(given, sample);
  const json = Object.keys(sample.fields).filter((name) => name === 'json' || name.endsWith('.json'));
  for (const field of json) {
    for (const { boxes, labels, polygons } of USUAL) {
      const places = [
        { boxes: { field, path: boxes }, labels: { field, path: labels }, polygons: { field, path: polygons } },
        { boxes: { field, path: boxes }, labels: { field, path: labels } },
        { boxes: { field, path: boxes } },
      ];
      for (const options of places) {
        try {
          const found = objectsAt(options, sample);
          return areParts(found) ? objectsAt(asYolo(options), sample) : found;
        } catch (error) {
          if (!(error instanceof SampleDecodeError)) throw error;
        }
      }
    }
  }
  return null;
}

/** True if all boxes would end within two pixels: their coordinates are then fractions of the image's size. */
function areParts({ count, boxes }: GivenAnnotations): boolean {
  return count > 0 && boxes?.every((value) => value <= 2) === true;
}

/** Adapts the options to the annotations that `pack --yolo` writes. */
function asYolo({ boxes, polygons, ...others }: AnnotationOptions): AnnotationOptions {
  return {
    ...others,
    boxes: boxes && { ...boxes, format: 'cxcywh', normalized: true },
    polygons: polygons && { ...polygons, normalized: true },
  };
}

function objectsAt(options: AnnotationOptions, sample: AnnotatedSample): GivenAnnotations {
  const checked = checkAnnotations(options);
  const texts = annotationSources(checked).map((source) => [nameOfSource(source), bytesOf(source, sample)] as const);
  return readAnnotations(checked, Object.fromEntries(texts));
}

/** Returns the objects as they are drawn on an image of this size, in its pixels. */
export function drawn(
  { count, boxes, labels, keypoints, polygons, normalized }: GivenAnnotations,
  { width, height }: { readonly width: number; readonly height: number },
  classes: readonly string[],
): DrawnObject[] {
  const x = (value: number, isPart: boolean) => (isPart ? value * width : value);
  const y = (value: number, isPart: boolean) => (isPart ? value * height : value);
  return Array.from({ length: count }, (_, object): DrawnObject => {
    const label = labels?.[object];
    const corners = boxes?.subarray(object * 4, object * 4 + 4);
    const points = keypoints?.values.subarray(object * keypoints.perObject * 3, (object + 1) * keypoints.perObject * 3);
    const isPart = normalized.boxes;
    return {
      label: label === undefined ? null : (classes[label] ?? String(label)),
      box:
        corners === undefined
          ? null
          : [x(corners[0]!, isPart), y(corners[1]!, isPart), x(corners[2]!, isPart), y(corners[3]!, isPart)],
      polygons: (polygons?.[object] ?? []).map((ring) =>
        Array.from(ring, (value, i) => (i % 2 === 0 ? x(value, normalized.polygons) : y(value, normalized.polygons))),
      ),
      points: Array.from({ length: (points?.length ?? 0) / 3 }, (_point, i) => i * 3)
        // In COCO a visibility of 0 means that the point is not labelled.
        .filter((at) => points![at + 2] !== 0)
        .map((at) => [x(points![at]!, normalized.keypoints), y(points![at + 1]!, normalized.keypoints)] as const),
    };
  });
}

/** Returns the bytes of a source of annotations: a field of the sample, or columns of the index. */
function bytesOf({ field, columns }: AnnotationSource, sample: AnnotatedSample): Uint8Array {
  const stored = field === undefined ? undefined : sample.fields[field];
  if (stored !== undefined) return stored;
  const missing = (columns ?? [field!]).find((name) => !Object.hasOwn(sample.columns, name));
  if (missing !== undefined) throw new SampleDecodeError({}, `it has no field or column "${missing}"`);
  const values = new Map(Object.entries(sample.columns).map(([name, value]) => [name, [value]]));
  return Buffer.from(columnsText(values, columns ?? field!, 0));
}

/** Throws {@link OptionError} if a file of annotations is invalid. This is checked before the server starts. */
export function checkGivenAnnotations(given: AnnotationOptions | undefined, names: readonly string[]): void {
  if (given === undefined) return;
  const asked = annotationSources(checkAnnotations(given)).flatMap(({ field, columns }) => columns ?? [field!]);
  const unknown = asked.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const there = `there are ${names.join(', ')}`;
  throw new OptionError({}, `annotations: no sample has the field or column "${unknown}": ${there}.`);
}
