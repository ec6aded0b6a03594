import { SampleDecodeError } from '@shardtool/base';
import type { Annotations } from '../transform/annotations.js';
import type { BoxFormat, CheckedAnnotations } from './options.js';

/** The objects of all rows of a batch, one row after the other. */
export interface BatchObjects {
  /** int32 [rows + 1]: those of row i are the objects from `offsets[i]` up to `offsets[i + 1]`. */
  readonly offsets: Int32Array;
  /** float32 [n, 4]. Null where no boxes were asked for. */
  readonly boxes: Float32Array | null;
  /** Class numbers, int32 [n]. */
  readonly boxLabels: Int32Array | null;
  /** Which object of its sample each is, int32 [n]: rows of other fields that are about objects. */
  readonly boxRows: Int32Array;
  /** float32 [n, count, 3]: x, y, and what was given with them (COCO: 0 not labelled, 1 hidden, 2 visible). */
  readonly keypoints: { readonly values: Float32Array; readonly count: number } | null;
  readonly polygons: BatchPolygons | null;
}

/** Without annotations there is nothing. */
export const NO_OBJECTS = {
  offsets: null,
  boxes: null,
  boxLabels: null,
  boxRows: null,
  keypoints: null,
  polygons: null,
} as const;

export interface BatchPolygons {
  /** float32 [p, 2]: x and y of the corners of all polygons. */
  readonly points: Float32Array;
  /** int32 [q + 1]: the corners of polygon i are those from `pointOffsets[i]` on. */
  readonly pointOffsets: Int32Array;
  /** int32 [n + 1]: the polygons of object i are those from `objectOffsets[i]` on. */
  readonly objectOffsets: Int32Array;
}

/**
 * Where things lie in a row, in words of 4 bytes: three counts (objects, polygons, corners), then places for as many objects,
 * polygons and corners as there may be.
 */
export interface RecordLayout {
  readonly bytes: number;
  readonly boxes: number;
  readonly labels: number;
  readonly rows: number;
  readonly keypoints: number;
  /** Polygons of each object, then corners of each polygon, then corners. */
  readonly rings: number;
  readonly corners: number;
  readonly points: number;
}

const COUNTS = 4;

export function layOutRecord(options: CheckedAnnotations): RecordLayout {
  const { maxBoxes, maxPoints, keypoints, polygons } = options;
  let words = COUNTS;
  const place = (count: number): number => {
    const at = words;
    words += count;
    return at;
  };
  const points = polygons === undefined ? 0 : maxPointsAfterCuts(maxPoints);
  const layout = {
    boxes: place(maxBoxes * 4),
    labels: place(maxBoxes),
    rows: place(maxBoxes),
    keypoints: place(maxBoxes * (keypoints?.count ?? 0) * 3),
    rings: place(polygons === undefined ? 0 : maxBoxes),
    corners: place(Math.ceil(points / 3)),
    points: place(points * 2),
  };
  return { ...layout, bytes: words * 4 };
}

/** A cut at one edge of the image adds at most as many corners again as cross it; all four seldom add many. */
function maxPointsAfterCuts(maxPoints: number): number {
  return 2 * maxPoints;
}

/** Writes a sample's objects to its row. Throws {@link SampleDecodeError} where the image's edges made too many corners. */
export function writeRecord(
  annotations: Annotations,
  layout: RecordLayout,
  format: BoxFormat,
  memory: ArrayBufferLike,
  address: number,
): void {
  const ints = new Int32Array(memory, address, layout.bytes / 4);
  const floats = new Float32Array(memory, address, layout.bytes / 4);
  const { rows, boxes, labels, keypoints, polygons } = annotations;
  const rings = polygons?.flat() ?? [];
  const points = rings.reduce((sum, ring) => sum + ring.length / 2, 0);
  if (layout.points + points * 2 > ints.length) {
    throw new SampleDecodeError({}, `its polygons have ${points} corners: raise the option annotations.maxPoints`);
  }
  ints.set([rows.length, rings.length, points]);
  if (boxes !== null) floats.set(inFormat(boxes, format), layout.boxes);
  if (labels !== null) ints.set(labels, layout.labels);
  ints.set(rows, layout.rows);
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

/** Copies the objects of a batch's rows out of its slot: `bytes` are the rows' records, one after the other. */
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
    place: number,
    each: number,
  ): Values => {
    for (let row = 0; row < rows; row++) {
      const at = row * words + place;
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
