import type { Axis } from '#reader/kernels/taps';

/**
 * The resize of the kernel in plain code: a triangle filter in floating point, rows first, columns second, rounded
 * to bytes in between. `pixels` is [height, width, 3]; so is the result.
 */
export function resizeReference(pixels: Uint8Array, width: number, height: number, x: Axis, y: Axis): Uint8Array {
  const wide = filterRows(pixels, height, width, x);
  const turned = filterRows(transposed(wide, height, x.count), x.count, height, y);
  return transposed(turned, x.count, y.count);
}

/** Resizes each of `rows` rows of `columns` pixels along the row. */
function filterRows(pixels: Uint8Array, rows: number, columns: number, axis: Axis): Uint8Array {
  const result = new Uint8Array(rows * axis.count * 3);
  const boxStart = axis.boxStart ?? 0;
  const scale = (axis.boxLength ?? axis.source) / axis.output;
  const support = Math.max(1, scale);
  for (let i = 0; i < axis.count; i++) {
    const centre = boxStart + (axis.first + i + 0.5) * scale;
    const taps: (readonly [number, number])[] = [];
    for (let k = Math.max(0, Math.floor(centre - support)); k < Math.min(columns, centre + support); k++) {
      taps.push([k, Math.max(0, 1 - Math.abs(k + 0.5 - centre) / support)]);
    }
    const total = taps.reduce((sum, [, weight]) => sum + weight, 0);
    const place = axis.flip ? axis.count - 1 - i : i;
    for (let row = 0; row < rows; row++) {
      for (let channel = 0; channel < 3; channel++) {
        let sum = 0;
        for (const [k, weight] of taps) sum += weight * pixels[(row * columns + k) * 3 + channel]!;
        result[(row * axis.count + place) * 3 + channel] = Math.floor(sum / total + 0.5);
      }
    }
  }
  return result;
}

/** [height, width, 3] to [width, height, 3]. */
function transposed(pixels: Uint8Array, height: number, width: number): Uint8Array {
  const result = new Uint8Array(pixels.length);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const from = (row * width + column) * 3;
      result.set(pixels.subarray(from, from + 3), (column * height + row) * 3);
    }
  }
  return result;
}
