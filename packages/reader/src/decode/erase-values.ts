import { philox } from '@shardtool/base';
import type { Rect, Size } from '../codec/codec.js';
import type { Scratch } from '../codec/scratch.js';
import type { EffectKernels } from '../kernels/effects.js';
import { halfFloatBits } from '../kernels/half-float.js';
import { rgb } from '../transform/effects.js';
import type { ErasedPart } from '../transform/plan.js';
import type { CompiledTransform } from '../transform/transform.js';
import { type Dtype, valueBytes } from '../transform/values.js';

/**
 * Overwrites rectangles of the finished image at address `target` (like `erase_image` of
 * torchvision.transforms.v2.functional). `image` is its size.
 */
export function eraseValues(
  parts: readonly ErasedPart[],
  image: Size,
  { dtype, layout }: Pick<CompiledTransform, 'dtype' | 'layout'>,
  { effects, scratch }: { readonly effects: EffectKernels; readonly scratch: Scratch },
  target: number,
): void {
  const bytes = valueBytes(dtype);
  const pattern = scratch.allocate(64);
  const fill = (rect: Rect, at: number, step: number, pixel: Uint8Array): void => {
    effects.writePattern(pixel, pattern);
    const first = at + (rect.y * image.width + rect.x) * step;
    effects.fillRows(first, image.width * step, rect.height, rect.width * step, pattern);
  };
  for (const { rect, value, noise } of parts) {
    if (value === 'random') {
      writeNoise(rect, image, { dtype, layout }, noise, scratch.memory, target);
      continue;
    }
    const channels = rgb(value).map((channel) => valueAsBytes(channel, dtype));
    if (layout === 'nhwc') fill(rect, target, 3 * bytes, Uint8Array.from(channels.flatMap((channel) => [...channel])));
    else {
      channels.forEach((channel, i) => {
        fill(rect, target + i * image.width * image.height * bytes, bytes, channel);
      });
    }
  }
}

function valueAsBytes(value: number, dtype: Dtype): Uint8Array {
  if (dtype === 'uint8') return Uint8Array.of(value);
  return new Uint8Array(
    dtype === 'float32' ? Float32Array.of(value).buffer : Uint16Array.of(halfFloatBits(value)).buffer,
  );
}

/** Writes normally distributed values into a rectangle of a float image, channel by channel. */
function writeNoise(
  rect: Rect,
  image: Size,
  { dtype, layout }: Pick<CompiledTransform, 'dtype' | 'layout'>,
  key: readonly [number, number],
  memory: Uint8Array,
  target: number,
): void {
  const values = 3 * image.width * image.height;
  const view = dtype === 'float32' ? new Float32Array(memory.buffer, target, values) : null;
  const bits = dtype === 'float16' ? new Uint16Array(memory.buffer, target, values) : null;
  const next = normals(key);
  for (let channel = 0; channel < 3; channel++) {
    for (let y = rect.y; y < rect.y + rect.height; y++) {
      for (let x = rect.x; x < rect.x + rect.width; x++) {
        const pixel = y * image.width + x;
        const at = layout === 'nchw' ? channel * image.width * image.height + pixel : pixel * 3 + channel;
        const value = next();
        if (view !== null) view[at] = value;
        else bits![at] = halfFloatBits(value);
      }
    }
  }
}

/** Generates normally distributed numbers. Two words of Philox4x32-10 with this key give two numbers (Box and Muller, 1958). */
export function normals([low, high]: readonly [number, number]): () => number {
  const words = new Uint32Array(4);
  const four = new Float64Array(4);
  let made = 0;
  return () => {
    const at = made & 3;
    if (at === 0) {
      philox((made >>> 2) | 0, 0, 0, 0, low | 0, high | 0, words);
      for (let pair = 0; pair < 4; pair += 2) {
        const radius = Math.sqrt(-2 * Math.log((words[pair]! + 1) * 2 ** -32));
        const angle = 2 * Math.PI * words[pair + 1]! * 2 ** -32;
        four[pair] = radius * Math.cos(angle);
        four[pair + 1] = radius * Math.sin(angle);
      }
    }
    made++;
    return four[at]!;
  };
}
