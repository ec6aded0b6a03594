/** The objects of rows that are made of several images. */
import { range } from '@shardtool/base';
import { clipped } from '../transform/clip-polygon.js';
import type { MosaicPart, ObjectRule } from '../transform/mixes/mosaic.js';

/** The objects of one row of a batch. Boxes are corners in pixels. */
export interface RowObjects {
  /** Index of each object among those of its sample. */
  readonly rows: readonly number[];
  /** The row of the batch whose sample each object is from. */
  readonly sources: readonly number[];
  /** [n, 4] */
  readonly boxes: Float64Array | null;
  /** [n] */
  readonly labels: Int32Array | null;
  /** [n, perObject, 3] */
  readonly keypoints: Float64Array | null;
  readonly perObject: number;
  readonly polygons: (readonly Float64Array[])[] | null;
}

/** The objects of several images, one after another. */
export function joinObjects(all: readonly RowObjects[]): RowObjects {
  const [first] = all;
  const numbers = (values: readonly (Float64Array | null)[]) =>
    values.some((one) => one === null) ? null : Float64Array.from(values.flatMap((one) => [...one!]));
  return {
    rows: all.flatMap(({ rows }) => rows),
    sources: all.flatMap(({ sources }) => sources),
    boxes: numbers(all.map(({ boxes }) => boxes)),
    labels: first!.labels && Int32Array.from(all.flatMap(({ labels }) => [...labels!])),
    keypoints: numbers(all.map(({ keypoints }) => keypoints)),
    perObject: first!.perObject,
    polygons: first!.polygons && all.flatMap(({ polygons }) => polygons!),
  };
}

/** The objects with these indices. */
export function takeObjects(objects: RowObjects, kept: readonly number[]): RowObjects {
  const taken = (values: Float64Array | null, each: number) =>
    values && Float64Array.from(kept.flatMap((i) => [...values.subarray(i * each, (i + 1) * each)]));
  const { rows, sources, boxes, labels, keypoints, perObject, polygons } = objects;
  return {
    rows: kept.map((i) => rows[i]!),
    sources: kept.map((i) => sources[i]!),
    boxes: taken(boxes, 4),
    labels: labels && Int32Array.from(kept, (i) => labels[i]!),
    keypoints: taken(keypoints, perObject * 3),
    perObject,
    polygons: polygons && kept.map((i) => polygons[i]!),
  };
}

/**
 * The objects of an image of which a mosaic shows one part. Boxes and polygons move with the part and are clipped to it. Keypoints outside the
 * part get 0 as their third number: another image is there. An object is dropped if its box is smaller than the rule allows or has no area;
 * without boxes, if no polygon and no keypoint of it remains.
 */
export function objectsOfPart(objects: RowObjects, { from, to }: MosaicPart, rule: ObjectRule): RowObjects {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const boxes = objects.boxes?.map((value, at) => {
    const [moved, start, length] = at % 2 === 0 ? [value + dx, to.x, to.width] : [value + dy, to.y, to.height];
    return Math.max(start, Math.min(moved, start + length));
  });
  const keypoints = objects.keypoints?.slice() ?? null;
  for (let at = 0; keypoints !== null && at < keypoints.length; at += 3) {
    const [x, y] = [keypoints[at]! + dx, keypoints[at + 1]! + dy];
    const isInside = x >= to.x && x < to.x + to.width && y >= to.y && y < to.y + to.height;
    keypoints.set([x, y, isInside ? keypoints[at + 2]! : 0], at);
  }
  const polygons = objects.polygons?.map((rings) =>
    rings.flatMap((ring) =>
      clipped(
        ring.map((value, at) => value - (at % 2 === 0 ? from.x : from.y)),
        to,
      ).map((part) => part.map((value, at) => value + (at % 2 === 0 ? to.x : to.y))),
    ),
  );
  const moved = { ...objects, boxes: boxes ?? null, keypoints, polygons: polygons ?? null };
  return takeObjects(
    moved,
    range(objects.rows.length).filter((object) => isKept(objects, moved, object, rule)),
  );
}

function isKept(before: RowObjects, after: RowObjects, object: number, rule: ObjectRule): boolean {
  if (after.boxes !== null) {
    const [width, height] = sidesOf(after.boxes, object);
    const [fullWidth, fullHeight] = sidesOf(before.boxes!, object);
    const isLarge = width > 0 && height > 0 && Math.min(width, height) >= rule.minSize;
    return isLarge && width * height >= rule.minVisibility * fullWidth * fullHeight;
  }
  const { keypoints, perObject, polygons } = after;
  const hasKeypoint = range(perObject).some((point) => keypoints![(object * perObject + point) * 3 + 2]! > 0);
  return hasKeypoint || (polygons?.[object]?.length ?? 0) > 0;
}

function sidesOf(boxes: Float64Array, object: number): readonly [width: number, height: number] {
  const at = object * 4;
  return [boxes[at + 2]! - boxes[at]!, boxes[at + 3]! - boxes[at + 1]!];
}
