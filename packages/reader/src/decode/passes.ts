import type { Pixels, Rect } from '../codec/codec.js';
import type { Scratch } from '../codec/scratch.js';
import type { EffectKernels, Picture } from '../kernels/effects.js';
import type { ResizeKernel } from '../kernels/resize.js';
import { sourceRange } from '../kernels/taps.js';
import { continueImage } from '../transform/borders.js';
import { borderedOf, isCopy, type Pass } from '../transform/canvas.js';
import type { Rgb } from '../transform/effects.js';
import { becomesFloatsLast, type CompiledTransform } from '../transform/transform.js';
import { allocatePicture, runEffects } from './run-effects.js';
import type { WidePasses } from './wide-passes.js';

/** The rectangle of its input that a pass reads. */
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

/** Sums up how long passes take while it is on. */
export interface PassClock {
  isOn: boolean;
  ms: number;
}

/** The kernels that passes use, and memory for intermediate pictures. */
export interface PassTools {
  readonly kernel: ResizeKernel;
  readonly scratch: Scratch;
  readonly clock: PassClock;
  /** Null if the transform does not need them. */
  readonly effects: EffectKernels | null;
  /** The bits of the float16 values of bytes, [3, 256]. Null if the dtype is not float16. */
  readonly halfFloats: Uint16Array | null;
  /** Runs the passes of images that are not 8-bit RGB. Null for 8-bit RGB. */
  readonly wide: WidePasses | null;
}

/** The format of the final result. */
type Output = Pick<CompiledTransform, 'pixelLayout' | 'normalization' | 'dtype' | 'layout'>;

/** RGB pixels in memory: the address of the first byte, and the number of bytes from one row to the next. */
type Source = Pick<Pixels, 'offset' | 'stride'>;

/** Bytes [height, width, 3]; in other formats, values of the decoded dtype, [height, width, channels]. */
export const BYTES: Output = { pixelLayout: 'uint8-nhwc', normalization: null, dtype: 'uint8', layout: 'nhwc' };

/**
 * Runs the passes on the pixels of the rectangle that {@link inputOf} returns for the first pass, and writes the result
 * to `target` in the format `output`.
 */
export function runPasses(
  passes: readonly Pass[],
  pixels: Source,
  output: Output,
  tools: PassTools,
  target: number,
): void {
  const { clock } = tools;
  const begun = clock.isOn ? performance.now() : 0;
  runAll(passes, pixels, output, tools, target);
  if (clock.isOn) clock.ms += performance.now() - begun;
}

function runAll(passes: readonly Pass[], pixels: Source, output: Output, tools: PassTools, target: number): void {
  const { scratch, effects, wide } = tools;
  if (wide !== null) {
    wide.run(passes, pixels, target, output !== BYTES);
    return;
  }
  let source = pixels;
  passes.forEach((pass, i) => {
    const next = passes[i + 1];
    if (next === undefined && pass.effects === undefined && !becomesFloatsLast(output)) {
      runPass(pass, source, output, tools, target);
      return;
    }
    const bordered = allocatePicture(scratch, borderedOf(pass));
    runPass(pass, source, BYTES, tools, bordered.address);
    const picture = effects && pass.effects ? runEffects(bordered, pass.effects, { effects, scratch }) : bordered;
    if (next === undefined) finish(picture, output, tools, target);
    else {
      const { x, y } = inputOf(next);
      source = { offset: picture.address + (y * picture.width + x) * 3, stride: picture.width * 3 };
    }
  });
}

/** Writes RGB bytes to `target`, converted to floats if `output` is float. */
function finish(
  picture: Picture,
  { layout, normalization }: Output,
  { kernel, scratch, effects, halfFloats }: PassTools,
  target: number,
): void {
  const { address, width, height } = picture;
  if (effects === null || normalization === null) {
    kernel.copyRows({ offset: address, stride: 0 }, { offset: target, stride: 0 }, width * height * 3, 1);
  } else if (halfFloats === null) effects.makeFloats(picture, normalization, target);
  else {
    const table = scratch.allocate(halfFloats.byteLength);
    new Uint16Array(scratch.memory.buffer, table, halfFloats.length).set(halfFloats);
    effects.lookUpWords(picture, table, layout, target);
  }
}

/** Resizes, then draws the border. A pass with a border writes bytes. */
function runPass(pass: Pass, source: Source, output: Output, tools: PassTools, target: number): void {
  const { x, y, border } = pass;
  if (border === null) {
    resizeOrCopy(pass, source, output, tools, target);
    return;
  }
  const { width, height } = borderedOf(pass);
  tools.kernel.fillPixels(target, width * height, colourOf(border.fill));
  if (x.count === 0 || y.count === 0) return;
  const inner = { offset: tools.scratch.allocate(x.count * y.count * 3), stride: x.count * 3 };
  resizeOrCopy(pass, source, BYTES, tools, inner.offset);
  const position = { offset: target + (border.top * width + border.left) * 3, stride: width * 3 };
  tools.kernel.copyRows(inner, position, x.count * 3, y.count);
  if (border.mode !== undefined) continueImage(tools.scratch.memory, target, { width, height }, border, border.mode, 3);
}

function resizeOrCopy(pass: Pass, source: Source, output: Output, tools: PassTools, target: number): void {
  const { x, y } = pass;
  const { pixelLayout, normalization } = output;
  if (isCopy(pass, pixelLayout)) {
    tools.kernel.copyRows(source, { offset: target, stride: x.count * 3 }, x.count * 3, y.count);
    return;
  }
  const { offset, stride } = source;
  tools.kernel.resize({ source: offset, stride, x, y, layout: pixelLayout, normalization, target });
}

function colourOf(fill: number | Rgb): Rgb {
  return typeof fill === 'number' ? [fill, fill, fill] : fill;
}
