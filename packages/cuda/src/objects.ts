import type { Batch, DeviceArray, DeviceObjects } from '@shardtool/reader';
import { plainArray } from './device-array.js';

/** Values of a batch that are outside of its slot on the host, and their shape on the device. */
export interface ObjectArray {
  readonly name: keyof DeviceObjects;
  readonly values: Int32Array | Float32Array;
  readonly shape: readonly number[];
}

/** Annotations of the images of a batch. Empty if they were not requested. */
export function objectArrays({ offsets, boxes, boxLabels, keypoints, polygons }: Batch): ObjectArray[] {
  if (offsets === null) return [];
  const objects = offsets.at(-1)!;
  const all: [keyof DeviceObjects, Int32Array | Float32Array | undefined, readonly number[]][] = [
    ['offsets', offsets, [offsets.length]],
    ['boxes', boxes ?? undefined, [objects, 4]],
    ['boxLabels', boxLabels ?? undefined, [objects]],
    ['keypoints', keypoints?.values, [objects, keypoints?.count ?? 0, 3]],
    ['points', polygons?.points, [(polygons?.points.length ?? 0) / 2, 2]],
  ];
  return all.flatMap(([name, values, shape]) => (values === undefined ? [] : [{ name, values, shape }]));
}

/** The same arrays on the device, at the addresses that `addressOf` returns. */
export function deviceObjects(arrays: readonly ObjectArray[], addressOf: (i: number) => bigint): DeviceObjects | null {
  if (arrays.length === 0) return null;
  const placed = arrays.map(({ name, values, shape }, i) => [name, plainArray(addressOf(i), values, shape)] as const);
  const found: { readonly [Name in keyof DeviceObjects]?: DeviceArray } = Object.fromEntries(placed);
  const { offsets, boxes = null, boxLabels = null, keypoints = null, points = null } = found;
  return { offsets: offsets!, boxes, boxLabels, keypoints, points };
}
