/** Objects that are pasted from one row of a batch into another. */
import { range } from '@shardtool/base';
import type { Rect, Size } from '../codec/codec.js';
import type { ObjectRule } from '../transform/mixes/mosaic.js';
import type { Random } from '../transform/random.js';
import { joinObjects, type RowObjects, takeObjects } from './mixed-objects.js';

/** Pixels of one line that are pasted. */
export interface PastedRun {
  readonly x: number;
  readonly y: number;
  readonly length: number;
}

/** A row after objects were pasted. */
export interface PastedRow {
  readonly objects: RowObjects;
  /** The pasted pixels. */
  readonly runs: readonly PastedRun[];
  /** Share of the area that still shows the row's own image. */
  readonly weight: number;
}

/** How objects are chosen and kept. */
export interface PasteOptions {
  readonly size: Size;
  readonly rule: ObjectRule;
  readonly objectP: number;
  readonly random: Random;
}

/**
 * Pastes objects of another row. Each object with polygons is chosen with the probability `objectP`; its pixels are those whose center is in
 * one of its polygons (even-odd rule). The row's own objects are then partly hidden: their boxes shrink to their visible pixels, and an object
 * is dropped if too few of its pixels remain. The pixels of an object without polygons are those of its box. Hidden keypoints get 0 as their
 * third number. Polygons do not change: a later object is in front of an earlier one.
 */
export function pasteObjects(own: RowObjects, other: RowObjects, options: PasteOptions): PastedRow {
  const { size, objectP, random } = options;
  const polygons = other.polygons!;
  const chosen = range(polygons.length).filter((object) => polygons[object]!.length > 0 && random.next() < objectP);
  if (chosen.length === 0) return { objects: own, runs: [], weight: 1 };
  const hidden = new Uint8Array(size.width * size.height);
  for (const object of chosen) for (const ring of polygons[object]!) fillRing(ring, size, (at) => (hidden[at] = 1));
  const runs = runsOf(hidden, size);
  const covered = runs.reduce((sum, { length }) => sum + length, 0);
  const left = visibleObjects(own, hidden, options);
  return {
    objects: joinObjects([left, takeObjects(other, chosen)]),
    runs,
    weight: 1 - covered / hidden.length,
  };
}

/** The row's own objects behind the pasted ones. */
function visibleObjects(own: RowObjects, hidden: Uint8Array, { size, rule }: PasteOptions): RowObjects {
  const boxes = own.boxes?.slice() ?? null;
  const kept = range(own.rows.length).filter((object) => {
    const { all, visible, bounds } = visiblePixels(own, object, hidden, size);
    if (visible === all) return true;
    if (visible === 0 || visible < rule.minVisibility * all) return false;
    if (boxes === null) return true;
    const at = object * 4;
    const { x, y, width, height } = bounds;
    const limits = [Math.max, Math.max, Math.min, Math.min] as const;
    [x, y, x + width, y + height].forEach((edge, i) => {
      boxes[at + i] = limits[i]!(boxes[at + i]!, edge);
    });
    const sides = [boxes[at + 2]! - boxes[at]!, boxes[at + 3]! - boxes[at + 1]!];
    return Math.min(...sides) > 0 && Math.min(...sides) >= rule.minSize;
  });
  const keypoints = own.keypoints?.slice() ?? null;
  for (let at = 0; keypoints !== null && at < keypoints.length; at += 3) {
    const [x, y] = [Math.floor(keypoints[at]!), Math.floor(keypoints[at + 1]!)];
    const isInside = x >= 0 && y >= 0 && x < size.width && y < size.height;
    if (isInside && hidden[y * size.width + x] === 1) keypoints[at + 2] = 0;
  }
  return takeObjects({ ...own, boxes, keypoints }, kept);
}

/** Number of pixels of an object, of those that are not hidden, and the bounds of the latter. */
function visiblePixels(own: RowObjects, object: number, hidden: Uint8Array, size: Size) {
  const seen = new Uint8Array(hidden.length);
  let all = 0;
  let visible = 0;
  let [left, top, right, bottom] = [size.width, size.height, 0, 0];
  const mark = (at: number, x: number, y: number) => {
    if (seen[at] === 1) return;
    seen[at] = 1;
    all++;
    if (hidden[at] === 1) return;
    visible++;
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + 1);
    bottom = Math.max(bottom, y + 1);
  };
  const rings = own.polygons?.[object] ?? [];
  if (rings.length > 0) for (const ring of rings) fillRing(ring, size, mark);
  else if (own.boxes !== null) fillRing(ringOf(own.boxes.subarray(object * 4, object * 4 + 4)), size, mark);
  const bounds: Rect = { x: left, y: top, width: right - left, height: bottom - top };
  return { all, visible, bounds };
}

function ringOf(box: Float64Array): Float64Array {
  const [left, top, right, bottom] = box as unknown as readonly [number, number, number, number];
  return Float64Array.of(left, top, right, top, right, bottom, left, bottom);
}

type Mark = (at: number, x: number, y: number) => void;

/** Calls `mark` with the index and position of each pixel whose center is inside the polygon, by the even-odd rule. */
function fillRing(ring: Float64Array, { width, height }: Size, mark: Mark): void {
  const ys = ring.filter((_, at) => at % 2 === 1);
  const first = Math.max(0, Math.ceil(Math.min(...ys) - 0.5));
  const end = Math.min(height, Math.ceil(Math.max(...ys) - 0.5));
  for (let y = first; y < end; y++) {
    const crossings = crossingsAt(ring, y + 0.5);
    for (let i = 0; i + 1 < crossings.length; i += 2) {
      const from = Math.max(0, Math.ceil(crossings[i]! - 0.5));
      const to = Math.min(width, Math.ceil(crossings[i + 1]! - 0.5));
      for (let x = from; x < to; x++) mark(y * width + x, x, y);
    }
  }
}

/** Where the edges of a polygon cross a horizontal line, in ascending order. */
function crossingsAt(ring: Float64Array, y: number): number[] {
  const crossings: number[] = [];
  for (let at = 0; at < ring.length; at += 2) {
    const next = (at + 2) % ring.length;
    const [x1, y1, x2, y2] = [ring[at]!, ring[at + 1]!, ring[next]!, ring[next + 1]!];
    if (y1 <= y === y2 <= y) continue;
    crossings.push(x1 + ((y - y1) * (x2 - x1)) / (y2 - y1));
  }
  return crossings.sort((a, b) => a - b);
}

function runsOf(hidden: Uint8Array, { width, height }: Size): PastedRun[] {
  const runs: PastedRun[] = [];
  for (let y = 0; y < height; y++) {
    const line = hidden.subarray(y * width, (y + 1) * width);
    for (let x = line.indexOf(1); x >= 0; ) {
      const end = line.indexOf(0, x);
      const length = (end < 0 ? width : end) - x;
      runs.push({ x, y, length });
      x = line.indexOf(1, x + length);
    }
  }
  return runs;
}
