import { optionName, range, SampleDecodeError, sentence, totalOf } from '@shardtool/base';
import type { Annotations } from '../transform/annotations.js';
import type { RowObjects } from './mixed-objects.js';
import type { BoxFormat, CheckedAnnotations } from './options.js';

/** The objects of all rows of a batch, in the order of rows. */
export interface BatchObjects {
  /** int32 [rows + 1]: row i has the objects `offsets[i]` to `offsets[i + 1] - 1`. */
  readonly offsets: Int32Array;
  /** Boxes, float32 [n, 4]. Null if the option `annotations` does not name boxes. */
  readonly boxes: Float32Array | null;
  /** Class numbers, int32 [n]. */
  readonly boxLabels: Int32Array | null;
  /** Index of each object among those of its sample, int32 [n]. Use it to look up other lists of the sample. */
  readonly boxRows: Int32Array;
  /** The row of the batch whose sample each object is from, int32 [n]. Null if the option `mix` is not set. */
  readonly boxSources: Int32Array | null;
  /** Keypoints, float32 [n, count, 3]: x, y, and the third number of the dataset (COCO: 0 not labelled, 1 hidden, 2 visible). */
  readonly keypoints: { readonly values: Float32Array; readonly count: number } | null;
  readonly polygons: BatchPolygons | null;
}

/** The objects of a batch without annotations. */
export const NO_OBJECTS = {
  offsets: null,
  boxes: null,
  boxLabels: null,
  boxRows: null,
  boxSources: null,
  keypoints: null,
  polygons: null,
} as const;

export interface BatchPolygons {
  /** float32 [p, 2]: x and y of the corners of all polygons. */
  readonly points: Float32Array;
  /** int32 [q + 1]: polygon i has the corners `pointOffsets[i]` to `pointOffsets[i + 1] - 1`. */
  readonly pointOffsets: Int32Array;
  /** int32 [n + 1]: object i has the polygons `objectOffsets[i]` to `objectOffsets[i + 1] - 1`. */
  readonly objectOffsets: Int32Array;
}

/**
 * The layout of the record of a row. All offsets are in words of 4 bytes. A record starts with three counts (objects, polygons,
 * corners), followed by space for the maximum number of objects, polygons and corners.
 */
export interface RecordLayout {
  /** Size of a record in bytes. */
  readonly bytes: number;
  readonly boxes: number;
  readonly labels: number;
  readonly rows: number;
  readonly sources: number;
  readonly keypoints: number;
  /** Offset of the number of polygons of each object. */
  readonly rings: number;
  /** Offset of the number of corners of each polygon. */
  readonly corners: number;
  /** Offset of the coordinates of all corners. */
  readonly points: number;
}

const COUNTS = 4;

export function layOutRecord(options: CheckedAnnotations): RecordLayout {
  const { keypoints, polygons, imagesPerRow } = options;
  const maxBoxes = options.maxBoxes * imagesPerRow;
  const maxPoints = options.maxPoints * imagesPerRow;
  let words = COUNTS;
  const allocate = (count: number): number => {
    const at = words;
    words += count;
    return at;
  };
  const points = polygons === undefined ? 0 : maxPointsAfterCuts(maxPoints);
  const layout = {
    boxes: allocate(maxBoxes * 4),
    labels: allocate(maxBoxes),
    rows: allocate(maxBoxes),
    sources: allocate(imagesPerRow > 1 ? maxBoxes : 0),
    keypoints: allocate(maxBoxes * (keypoints?.count ?? 0) * 3),
    rings: allocate(polygons === undefined ? 0 : maxBoxes),
    corners: allocate(Math.ceil(points / 3)),
    points: allocate(points * 2),
  };
  return { ...layout, bytes: words * 4 };
}

/** Space for the corners after clipping. Clipping at one edge adds at most as many corners as cross it; in practice few are added. */
function maxPointsAfterCuts(maxPoints: number): number {
  return 2 * maxPoints;
}

/**
 * Writes the objects of a sample, or of the samples that are mixed in a row, to the record of the row. Throws {@link SampleDecodeError} if
 * clipping at the edges has made too many corners.
 */
export function writeRecord(
  annotations: Annotations | RowObjects,
  layout: RecordLayout,
  format: BoxFormat,
  memory: ArrayBufferLike,
  address: number,
): void {
  const ints = new Int32Array(memory, address, layout.bytes / 4);
  const floats = new Float32Array(memory, address, layout.bytes / 4);
  const { rows, boxes, labels, keypoints, polygons } = annotations;
  const rings = polygons?.flat() ?? [];
  const points = totalOf(rings, (ring) => ring.length / 2);
  if (layout.points + points * 2 > ints.length) {
    throw new SampleDecodeError(
      {},
      sentence`its polygons have ${points} corners: raise the option ${optionName('annotations.maxPoints')}`,
    );
  }
  ints.set([rows.length, rings.length, points]);
  if (boxes !== null) floats.set(inFormat(boxes, format), layout.boxes);
  if (labels !== null) ints.set(labels, layout.labels);
  ints.set(rows, layout.rows);
  if ('sources' in annotations) ints.set(annotations.sources, layout.sources);
  if (keypoints !== null) floats.set(keypoints, layout.keypoints);
  polygons?.forEach((object, i) => {
    ints[layout.rings + i] = object.length;
  });
  let at = layout.points;
  rings.forEach((ring, i) => {
    ints[layout.corners + i] = ring.length / 2;
    floats.set(ring, at);
    at += ring.length;
  });
}

function inFormat(corners: Float64Array, format: BoxFormat): Float64Array {
  if (format === 'xyxy') return corners;
  const boxes = corners.slice();
  for (let at = 0; at < boxes.length; at += 4) {
    const [left, top, right, bottom] = corners.subarray(at, at + 4) as unknown as readonly [
      number,
      number,
      number,
      number,
    ];
    boxes[at + 2] = right - left;
    boxes[at + 3] = bottom - top;
    if (format === 'xywh') continue;
    boxes[at] = (left + right) / 2;
    boxes[at + 1] = (top + bottom) / 2;
  }
  return boxes;
}

/** Reads the objects of the record of row `row`, which was written with the box format xyxy and has the objects of one sample. */
export function readRecord(
  memory: ArrayBufferLike,
  address: number,
  row: number,
  layout: RecordLayout,
  options: CheckedAnnotations,
): RowObjects {
  const ints = new Int32Array(memory, address, layout.bytes / 4);
  const floats = new Float32Array(memory, address, layout.bytes / 4);
  const count = ints[0]!;
  const perObject = options.keypoints?.count ?? 0;
  const numbers = (at: number, length: number) => Float64Array.from(floats.subarray(at, at + length));
  let ring = 0;
  let at = layout.points;
  const nextRing = () => {
    const length = ints[layout.corners + ring++]! * 2;
    at += length;
    return numbers(at - length, length);
  };
  return {
    rows: [...ints.subarray(layout.rows, layout.rows + count)],
    sources: Array<number>(count).fill(row),
    boxes: options.boxes === undefined ? null : numbers(layout.boxes, count * 4),
    labels: options.labels === undefined ? null : ints.slice(layout.labels, layout.labels + count),
    keypoints: options.keypoints === undefined ? null : numbers(layout.keypoints, count * perObject * 3),
    perObject,
    polygons:
      options.polygons === undefined
        ? null
        : range(count).map((object) => range(ints[layout.rings + object]!).map(nextRing)),
  };
}

/** Copies the objects of a batch out of its slot. `bytes` are the records of the rows, one after another. */
export function readRecords(
  bytes: Uint8Array,
  rows: number,
  layout: RecordLayout,
  options: CheckedAnnotations,
): BatchObjects {
  const ints = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const floats = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const words = layout.bytes / 4;
  const offsets = new Int32Array(rows + 1);
  const totals = { rings: 0, points: 0 };
  for (let row = 0; row < rows; row++) {
    offsets[row + 1] = offsets[row]! + ints[row * words]!;
    totals.rings += ints[row * words + 1]!;
    totals.points += ints[row * words + 2]!;
  }
  const count = offsets[rows]!;
  const joined = <Values extends Int32Array | Float32Array>(
    from: Values,
    to: Values,
    offset: number,
    each: number,
  ): Values => {
    for (let row = 0; row < rows; row++) {
      const at = row * words + offset;
      to.set(from.subarray(at, at + ints[row * words]! * each), offsets[row]! * each);
    }
    return to;
  };
  const { boxes, labels, keypoints, polygons } = options;
  const perObject = keypoints?.count ?? 0;
  return {
    offsets,
    boxes: boxes === undefined ? null : joined(floats, new Float32Array(count * 4), layout.boxes, 4),
    boxLabels: labels === undefined ? null : joined(ints, new Int32Array(count), layout.labels, 1),
    boxRows: joined(ints, new Int32Array(count), layout.rows, 1),
    boxSources: options.imagesPerRow === 1 ? null : joined(ints, new Int32Array(count), layout.sources, 1),
    keypoints:
      keypoints === undefined
        ? null
        : {
            values: joined(floats, new Float32Array(count * perObject * 3), layout.keypoints, perObject * 3),
            count: perObject,
          },
    polygons: polygons === undefined ? null : joinedPolygons(),
  };

  function joinedPolygons(): BatchPolygons {
    const rings = joined(ints, new Int32Array(count), layout.rings, 1);
    const pointOffsets = new Int32Array(totals.rings + 1);
    const points = new Float32Array(totals.points * 2);
    let ring = 0;
    for (let row = 0; row < rows; row++) {
      const first = row * words;
      const from = pointOffsets[ring]!;
      for (let i = 0; i < ints[first + 1]!; i++, ring++) {
        pointOffsets[ring + 1] = pointOffsets[ring]! + ints[first + layout.corners + i]!;
      }
      const at = first + layout.points;
      points.set(floats.subarray(at, at + ints[first + 2]! * 2), from * 2);
    }
    return { points, pointOffsets, objectOffsets: offsetsOf(rings) };
  }
}

function offsetsOf(counts: Int32Array): Int32Array {
  const offsets = new Int32Array(counts.length + 1);
  counts.forEach((count, i) => {
    offsets[i + 1] = offsets[i]! + count;
  });
  return offsets;
}
