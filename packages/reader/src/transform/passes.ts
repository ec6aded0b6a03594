import { SampleDecodeError } from '@shardtool/format';
import type { Pixels, Rect } from '../codec/codec.js';
import type { Scratch } from '../codec/scratch.js';
import { type ResizeKernel, SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import { sourceRange } from '../kernels/taps.js';
import { type Pass, resultOf } from './plan.js';
import { LARGEST_SIDE } from './steps.js';
import type { CompiledTransform } from './transform.js';

/** The pixels of its input that a pass reads. */
export function inputOf({ source, x, y }: Pass): Rect {
  if (x.count === 0 || y.count === 0) return { x: 0, y: 0, width: 1, height: 1 };
  const columns = sourceRange(x);
  const rows = sourceRange(y);
  return {
    x: source.x + columns.lo,
    y: source.y + rows.lo,
    width: columns.hi - columns.lo,
    height: rows.hi - rows.lo,
  };
}

/** Runs the passes over what {@link inputOf} the first names, and writes the result, in the transform's layout, to `target`. */
export function runPasses(
  passes: readonly Pass[],
  pixels: Pixels,
  transform: CompiledTransform,
  kernel: ResizeKernel,
  scratch: Scratch,
  target: number,
): void {
  let { offset, stride } = pixels;
  passes.forEach((pass, i) => {
    const next = passes[i + 1];
    const size = resultOf(pass);
    const result = next === undefined ? target : scratch.allocate(size.width * size.height * 3 + SOURCE_SLACK_BYTES);
    runPass(pass, offset, stride, next === undefined ? transform : BYTES, kernel, scratch, result);
    if (next === undefined) return;
    const { x, y } = inputOf(next);
    stride = size.width * 3;
    offset = result + y * stride + x * 3;
  });
}

type Output = Pick<CompiledTransform, 'pixelLayout' | 'normalization'>;

const BYTES: Output = { pixelLayout: 'uint8-nhwc', normalization: null };

function runPass(
  pass: Pass,
  source: number,
  stride: number,
  output: Output,
  kernel: ResizeKernel,
  scratch: Scratch,
  target: number,
): void {
  const { x, y, border } = pass;
  const { memory } = scratch;
  if (border === null) return resizeOrCopy(pass, source, stride, output, kernel, memory, target);
  const size = resultOf(pass);
  const row = size.width * 3;
  memory.fill(border.fill, target, target + row * size.height);
  if (x.count === 0 || y.count === 0) return;
  const inner = scratch.allocate(x.count * y.count * 3 + SOURCE_SLACK_BYTES);
  resizeOrCopy(pass, source, stride, output, kernel, memory, inner);
  copyRows(memory, inner, x.count * 3, target + border.top * row + border.left * 3, row, x.count * 3, y.count);
}

function resizeOrCopy(
  { x, y }: Pass,
  source: number,
  stride: number,
  { pixelLayout, normalization }: Output,
  kernel: ResizeKernel,
  memory: Uint8Array,
  target: number,
): void {
  const sameSize = x.source === x.output && y.source === y.output;
  if (sameSize && !x.flip && !y.flip && pixelLayout === 'uint8-nhwc') {
    return copyRows(memory, source, stride, target, x.count * 3, x.count * 3, y.count);
  }
  if (Math.max(x.count, y.count) > LARGEST_SIDE) {
    throw new SampleDecodeError(
      {},
      `the transform makes it ${x.count}x${y.count} pixels, more than ${LARGEST_SIDE} a side: add a crop, or give resize a ` +
        'maxSize or [height, width]',
    );
  }
  kernel.resize({ source, stride, x, y, layout: pixelLayout, target, ...(normalization && { normalization }) });
}

function copyRows(
  memory: Uint8Array,
  from: number,
  fromStride: number,
  to: number,
  toStride: number,
  bytes: number,
  rows: number,
): void {
  for (let y = 0; y < rows; y++)
    memory.copyWithin(to + y * toStride, from + y * fromStride, from + y * fromStride + bytes);
}
