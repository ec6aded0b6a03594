/** Draws boxes, polygons and keypoints onto their images. */
import type { Batch } from '@shardtool/reader';
import { colourOf } from './tiles.js';

/** A picture of 3 bytes per pixel. */
interface Tile {
  readonly pixels: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** Draws the objects of image `row` of a batch, whose boxes are given by corners. Each label has its own colour. */
export function drawObjects(tile: Tile, { offsets, boxes, boxLabels, keypoints, polygons }: Batch, row: number): void {
  if (offsets === null) return;
  for (let object = offsets[row]!; object < offsets[row + 1]!; object++) {
    const colour = colourOf((boxLabels?.[object] ?? 0) + 1);
    if (boxes !== null) {
      const [left, top, right, bottom] = boxes.subarray(object * 4, object * 4 + 4) as unknown as Corners;
      drawRing(tile, [left, top, right - 1, top, right - 1, bottom - 1, left, bottom - 1], colour);
    }
    if (polygons !== null) {
      const { objectOffsets, pointOffsets, points } = polygons;
      for (let ring = objectOffsets[object]!; ring < objectOffsets[object + 1]!; ring++) {
        drawRing(tile, points.subarray(pointOffsets[ring]! * 2, pointOffsets[ring + 1]! * 2), colour);
      }
    }
    for (let point = 0; point < (keypoints?.count ?? 0); point++) {
      const [x, y, seen] = keypoints!.values.subarray((object * keypoints!.count + point) * 3) as unknown as Corners;
      // COCO: 0 is not labelled.
      if (seen === 0) continue;
      for (const down of [-1, 0, 1]) for (const right of [-1, 0, 1]) set(tile, x + right, y + down, colour);
    }
  }
}

type Corners = readonly [number, number, number, number];
type Colour = readonly [number, number, number];

function drawRing(tile: Tile, ring: ArrayLike<number>, colour: Colour): void {
  for (let at = 0; at < ring.length; at += 2) {
    const next = (at + 2) % ring.length;
    drawLine(tile, [ring[at]!, ring[at + 1]!, ring[next]!, ring[next + 1]!], colour);
  }
}

function drawLine(tile: Tile, [x1, y1, x2, y2]: Corners, colour: Colour): void {
  const steps = Math.max(1, Math.ceil(Math.max(Math.abs(x2 - x1), Math.abs(y2 - y1))));
  for (let i = 0; i <= steps; i++) set(tile, x1 + ((x2 - x1) * i) / steps, y1 + ((y2 - y1) * i) / steps, colour);
}

function set({ pixels, width, height }: Tile, x: number, y: number, colour: Colour): void {
  const [column, row] = [Math.round(x), Math.round(y)];
  if (column < 0 || row < 0 || column >= width || row >= height) return;
  pixels.set(colour, (row * width + column) * 3);
}
