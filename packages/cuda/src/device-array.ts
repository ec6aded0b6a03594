import type { DeviceArray, DevicePlan } from '@shardtool/reader';

interface Size {
  readonly rows: number;
  readonly height: number;
  readonly width: number;
}

/** [n, 3, height, width] or [n, height, width, 3]. */
export function imageArray(
  devicePointer: bigint,
  { dtype, layout }: Pick<DevicePlan, 'dtype' | 'layout'>,
  { rows, height, width }: Size,
): DeviceArray {
  const shape = layout === 'nchw' ? [rows, 3, height, width] : [rows, height, width, 3];
  return { devicePointer, dtype, shape, strides: contiguous(shape) };
}

/** uint8 [n, height, width]. */
export function maskArray(devicePointer: bigint, { rows, height, width }: Size): DeviceArray {
  const shape = [rows, height, width];
  return { devicePointer, dtype: 'uint8', shape, strides: contiguous(shape) };
}

/** Values with the same layout as on the host. */
export function plainArray(
  devicePointer: bigint,
  values: Int32Array | Float32Array,
  shape: readonly number[],
): DeviceArray {
  const dtype = values instanceof Int32Array ? 'int32' : 'float32';
  return { devicePointer, dtype, shape, strides: contiguous(shape) };
}

function contiguous(shape: readonly number[]): number[] {
  let stride = 1;
  return shape
    .map((_, i) => {
      const dimension = shape.length - 1 - i;
      const own = stride;
      stride *= shape[dimension]!;
      return own;
    })
    .reverse();
}
