import { didYouMean, OptionError, sentence, totalOf, withCodeNames } from '@shardtool/base';
import type { Rect, Size } from '../codec/codec.js';

/** The recorded result of a step: the remaining part of the image, or whether it was mirrored. */
const RECORDED = {
  centerCrop: 'crop',
  cover: 'crop',
  randomCrop: 'crop',
  randomIoUCrop: 'crop',
  randomResizedCrop: 'crop',
  randomHorizontalFlip: 'x',
  randomVerticalFlip: 'y',
} as const;

/** The steps whose draws can be recorded. */
export type DrawnName = keyof typeof RECORDED;

/** Number of values that are recorded of a step: 4 of a crop (x, y, width, height), 1 of a flip. */
export function valuesOfDrawn(name: DrawnName): 1 | 4 {
  return RECORDED[name] === 'crop' ? 4 : 1;
}

/**
 * Checks the option `draws`, which also takes torchvision's spelling. Throws {@link OptionError} for steps whose draws
 * cannot be recorded.
 */
export function checkDrawnNames(names: readonly string[]): DrawnName[] {
  return names.map((name) => {
    const known = Object.keys(RECORDED) as DrawnName[];
    const found = known.find((one) => one.toLowerCase() === name.replaceAll('_', '').toLowerCase());
    if (found !== undefined) return found;
    throw new OptionError(
      {},
      sentence`draws cannot record the step "${name}"${withCodeNames(didYouMean(name, known) || '.')} It records ${withCodeNames(known.join(', '))}.`,
    );
  });
}

/**
 * A coordinate of the source image: `start + scale * x` for the coordinate x of the current image, both at pixel edges.
 */
interface SourceAxis {
  start: number;
  scale: number;
}

/**
 * Follows the position of the current image in its source, and records it after each requested step. A crop is recorded
 * as the rectangle of the source that is left after the step: x, y, width and height in pixels, of the upright image at
 * full size. It may have fractions if the image was resized before, and reach beyond the image if it was padded. After
 * a rotation it is NaN. A flip is recorded as 1 or 0. If a step did not run, its crop is the whole image. If it ran
 * several times, the last one counts.
 */
export class DrawnSteps {
  readonly #x: SourceAxis = { start: 0, scale: 1 };
  readonly #y: SourceAxis = { start: 0, scale: 1 };
  #size: Size;
  readonly #names: readonly DrawnName[];
  /** The values of all names, one after the other. */
  readonly values: Float32Array;
  #flipped = { x: false, y: false };

  constructor(image: Size, names: readonly DrawnName[]) {
    this.#size = image;
    this.#names = names;
    this.values = new Float32Array(totalOf(names, valuesOfDrawn));
    for (const name of names) if (RECORDED[name] === 'crop') this.record(name);
  }

  crop({ x, y, width, height }: Rect): void {
    this.#x.start += this.#x.scale * x;
    this.#y.start += this.#y.scale * y;
    this.#size = { width, height };
  }

  resize(from: Size, to: Size): void {
    this.#x.scale *= from.width / to.width;
    this.#y.scale *= from.height / to.height;
    this.#size = to;
  }

  flip(axis: 'x' | 'y', { width, height }: Size): void {
    const source = axis === 'x' ? this.#x : this.#y;
    source.start += source.scale * (axis === 'x' ? width : height);
    source.scale = -source.scale;
    this.#flipped[axis] = true;
  }

  rotate(): void {
    this.#x.start = Number.NaN;
    this.#y.start = Number.NaN;
  }

  /** Call this after each step. */
  record(step: string): void {
    let at = 0;
    for (const name of this.#names) {
      if (name === step) this.#write(RECORDED[name], at);
      at += valuesOfDrawn(name);
    }
    this.#flipped = { x: false, y: false };
  }

  #write(what: 'crop' | 'x' | 'y', at: number): void {
    if (what !== 'crop') {
      this.values[at] = this.#flipped[what] ? 1 : 0;
      return;
    }
    const [x, y] = [rangeOf(this.#x, this.#size.width), rangeOf(this.#y, this.#size.height)];
    this.values.set([x.start, y.start, x.length, y.length], at);
  }
}

function rangeOf({ start, scale }: SourceAxis, count: number): { readonly start: number; readonly length: number } {
  const length = Math.abs(scale * count);
  return { start: scale < 0 ? start - length : start, length: Number.isNaN(start) ? start : length };
}
