import type { Values } from '../codec/wide/png-values.js';
import type { Axis } from '../kernels/taps.js';
import { continueImage } from '../transform/borders.js';
import { type Border, borderedOf, type Pass } from '../transform/canvas.js';
import type { Effect, EffectEntry } from '../transform/effects.js';
import { EFFECTS } from '../transform/step-table.js';

/**
 * Applies the passes of an image, planned for its full size, to its mask: crops, flips, resizes and rotations. Each pixel takes the
 * value of the nearest source pixel, so no new values appear. Colour effects do not change masks.
 */
export function transformMask(mask: Values, passes: readonly Pass[]): Values {
  return passes.reduce((now, pass) => {
    const placed = withBorder(resized(now, pass), pass);
    return (pass.effects ?? []).reduce((values, effect) => affected(values, effect), placed);
  }, mask);
}

function affected(mask: Values, effect: Effect): Values {
  const entry = EFFECTS[effect.kind] as EffectEntry<Effect>;
  return 'run' in entry && entry.mask !== undefined ? entry.mask(mask, effect) : mask;
}

function resized(mask: Values, { source, x, y, flippedFirst }: Pass): Values {
  const columns = nearest(x, source.x, flippedFirst?.x ?? false);
  const rows = nearest(y, source.y, flippedFirst?.y ?? false);
  const values = new Uint8Array(x.count * y.count);
  for (let row = 0; row < y.count; row++) {
    const from = rows[row]! * mask.width;
    const to = row * x.count;
    for (let column = 0; column < x.count; column++) values[to + column] = mask.values[from + columns[column]!]!;
  }
  return { width: x.count, height: y.count, values };
}

/** The source pixel for each result pixel (PyTorch's `interpolate` with mode `nearest`, in float32 as there). */
function nearest({ source, output, first, count, flip }: Axis, start: number, flippedFirst: boolean): Int32Array {
  const scale = Math.fround(source / output);
  const pixels = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const at = flippedFirst ? output - 1 - first - i : first + i;
    const nearestPixel = Math.min(source - 1, Math.floor(Math.fround(at * scale)));
    pixels[flip ? count - 1 - i : i] = start + (flippedFirst ? source - 1 - nearestPixel : nearestPixel);
  }
  return pixels;
}

function withBorder(mask: Values, pass: Pass): Values {
  if (pass.border === null) return mask;
  const { left, top, maskFill }: Border = pass.border;
  const { width, height } = borderedOf(pass);
  const values = new Uint8Array(width * height).fill(maskFill);
  for (let row = 0; row < mask.height; row++) {
    values.set(mask.values.subarray(row * mask.width, (row + 1) * mask.width), (top + row) * width + left);
  }
  if (pass.border.mode !== undefined) continueImage(values, 0, { width, height }, pass.border, pass.border.mode, 1);
  return { width, height, values };
}
