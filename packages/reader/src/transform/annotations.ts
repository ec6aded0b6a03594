/** Annotations of an image: boxes, keypoints and polygons that move with it, by the rules of torchvision.transforms.v2. */
import { range } from '@shardtool/base';
import type { Rect, Size } from '../codec/codec.js';
import { clipped } from './clip-polygon.js';
import type { RotateEffect } from './steps/geometry/rotation.js';

/** The objects of an image as they were packed. A part that the sample lacks is null. */
export interface GivenAnnotations {
  /** Number of objects, n below. */
  readonly count: number;
  /** Box corners [n, 4]: left, top, right, bottom. */
  readonly boxes: Float64Array | null;
  /** Class numbers [n]. */
  readonly labels: Int32Array | null;
  /** Keypoints [n, perObject, 3]: x, y, and a number that does not change (COCO: 0 not labelled, 1 hidden, 2 visible). */
  readonly keypoints: { readonly perObject: number; readonly values: Float64Array } | null;
  /** For each object its rings; for each ring the coordinates x and y of its corners. */
  readonly polygons: readonly (readonly Float64Array[])[] | null;
  /** Which parts have coordinates relative to the image's width and height (0 to 1) instead of pixels. */
  readonly normalized: Readonly<Record<'boxes' | 'keypoints' | 'polygons', boolean>>;
}

/** The objects of one image while its transform steps are applied. Coordinates are pixels. */
export class Annotations {
  /** Indices of the remaining objects in the annotations as packed. */
  rows: number[];
  boxes: Float64Array | null;
  labels: Int32Array | null;
  keypoints: Float64Array | null;
  readonly perObject: number;
  polygons: (readonly Float64Array[])[] | null;

  constructor(given: GivenAnnotations, { width, height }: Size) {
    const { normalized } = given;
    this.rows = range(given.count);
    this.boxes = given.boxes?.slice() ?? null;
    this.labels = given.labels;
    this.keypoints = given.keypoints?.values.slice() ?? null;
    this.perObject = given.keypoints?.perObject ?? 0;
    this.polygons = given.polygons?.map((rings) => rings.map((ring) => ring.slice())) ?? null;
    if (normalized.boxes) this.#boxes((value, axis) => value * (axis === 0 ? width : height));
    if (normalized.keypoints) this.#keypoints((x, y) => [x * width, y * height]);
    if (normalized.polygons) this.#polygons((x, y) => [x * width, y * height]);
  }

  /** Crops to a rectangle, which may extend beyond the image. Boxes and polygons are clipped to it, keypoints are not. */
  crop({ x, y, width, height }: Rect): void {
    this.#boxes((value, axis) => value - (axis === 0 ? x : y));
    this.#clamp({ width, height });
    this.#keypoints((pointX, pointY) => [pointX - x, pointY - y]);
    this.#polygons((pointX, pointY) => [pointX - x, pointY - y]);
    this.polygons = this.polygons?.map((rings) => rings.flatMap((ring) => clipped(ring, { width, height }))) ?? null;
  }

  resize(from: Size, to: Size): void {
    if (from.width === to.width && from.height === to.height) return;
    const x = to.width / from.width;
    const y = to.height / from.height;
    this.#boxes((value, axis) => value * (axis === 0 ? x : y));
    this.#keypoints((pointX, pointY) => [pointX * x, pointY * y]);
    this.#polygons((pointX, pointY) => [pointX * x, pointY * y]);
  }

  /** Mirrors along an axis. Boxes and polygons are mirrored as pixel edges, keypoints as pixel centers. */
  flip(axis: 'x' | 'y', { width, height }: Size): void {
    const length = axis === 'x' ? width : height;
    const side = axis === 'x' ? 0 : 1;
    const { boxes } = this;
    for (let at = side; boxes !== null && at < boxes.length; at += 4) {
      [boxes[at], boxes[at + 2]] = [length - boxes[at + 2]!, length - boxes[at]!];
    }
    this.#keypoints((x, y) => (side === 0 ? [length - 1 - x, y] : [x, length - 1 - y]));
    this.#polygons((x, y) => (side === 0 ? [length - x, y] : [x, length - y]));
  }

  /** Rotates, or applies another affine map. A box becomes the bounding box of its moved corners. */
  rotate(
    { matrix: [a, b, c, d, e, f], size }: Pick<RotateEffect, 'matrix' | 'size'>,
    image: Size,
    expands: boolean,
  ): void {
    // The matrix maps the result back to the source. The inverse of a rotation is its transpose.
    const area = a * e - b * d;
    const isRotation = a === e && b === -d && Math.abs(area - 1) < 1e-9;
    const [p, q, r, s] = isRotation ? [a, d, b, e] : [e / area, -b / area, -d / area, a / area];
    const turned = (x: number, y: number): readonly [number, number] => {
      const [fromX, fromY] = [x - image.width / 2 - c, y - image.height / 2 - f];
      return [p * fromX + q * fromY + image.width / 2, r * fromX + s * fromY + image.height / 2];
    };
    const corners = [turned(0, 0), turned(image.width, 0), turned(image.width, image.height), turned(0, image.height)];
    // torchvision counts from the smallest corner of the rotated image, before its size is rounded to integers.
    const [left, top] = expands
      ? [Math.min(...corners.map(([x]) => x)), Math.min(...corners.map(([, y]) => y))]
      : [0, 0];
    this.warp((x, y) => {
      const [toX, toY] = turned(x, y);
      return [toX - left, toY - top];
    }, size);
  }

  /** Moves every point. A box becomes the bounding box of its moved corners. `size` is that of the result. */
  warp(moved: (x: number, y: number) => readonly [number, number], size: Size): void {
    const { boxes } = this;
    for (let at = 0; boxes !== null && at < boxes.length; at += 4) {
      const [x1, y1, x2, y2] = [boxes[at]!, boxes[at + 1]!, boxes[at + 2]!, boxes[at + 3]!];
      const points = [moved(x1, y1), moved(x2, y1), moved(x2, y2), moved(x1, y2)];
      const xs = points.map(([x]) => x);
      const ys = points.map(([, y]) => y);
      boxes.set([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], at);
    }
    this.#clamp(size);
    this.#keypoints(moved);
    this.#polygons(moved);
    this.polygons = this.polygons?.map((rings) => rings.flatMap((ring) => clipped(ring, size))) ?? null;
  }

  /** Sets the boxes of the objects for which `isGone` is true to zero size. {@link keep} can then drop them. */
  empty(isGone: (object: number) => boolean): void {
    this.rows.forEach((_, object) => {
      if (isGone(object)) this.boxes?.fill(0, object * 4, object * 4 + 4);
    });
  }

  /** Drops all objects for which `isKept` is false. */
  keep(isKept: (object: number) => boolean): void {
    const kept = this.rows.map((_, object) => object).filter(isKept);
    if (kept.length === this.rows.length) return;
    const taken = (values: Float64Array | null, each: number): Float64Array | null =>
      values && Float64Array.from(kept.flatMap((object) => [...values.subarray(object * each, (object + 1) * each)]));
    this.rows = kept.map((object) => this.rows[object]!);
    this.boxes = taken(this.boxes, 4);
    this.keypoints = taken(this.keypoints, this.perObject * 3);
    const { labels, polygons } = this;
    this.labels = labels && Int32Array.from(kept, (object) => labels[object]!);
    this.polygons = polygons && kept.map((object) => polygons[object]!);
  }

  #clamp({ width, height }: Size): void {
    this.#boxes((value, axis) => Math.max(0, Math.min(value, axis === 0 ? width : height)));
  }

  /** Moves every coordinate of every box. `axis` is 0 for x and 1 for y. */
  #boxes(move: (value: number, axis: number) => number): void {
    const { boxes } = this;
    for (let at = 0; boxes !== null && at < boxes.length; at++) boxes[at] = move(boxes[at]!, at & 1);
  }

  #keypoints(move: (x: number, y: number) => readonly [number, number]): void {
    const { keypoints } = this;
    for (let at = 0; keypoints !== null && at < keypoints.length; at += 3) {
      const [x, y] = move(keypoints[at]!, keypoints[at + 1]!);
      keypoints[at] = x;
      keypoints[at + 1] = y;
    }
  }

  #polygons(move: (x: number, y: number) => readonly [number, number]): void {
    for (const ring of this.polygons?.flat() ?? []) {
      for (let at = 0; at < ring.length; at += 2) {
        const [x, y] = move(ring[at]!, ring[at + 1]!);
        ring[at] = x;
        ring[at + 1] = y;
      }
    }
  }
}
