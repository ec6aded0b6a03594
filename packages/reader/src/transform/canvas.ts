import { SampleDecodeError, sentence } from '@shardtool/base';
import type { Rect, Size } from '../codec/codec.js';
import type { Filter } from '../kernels/filters.js';
import type { PixelLayout } from '../kernels/resize.js';
import type { Axis } from '../kernels/taps.js';
import type { Annotations } from './annotations.js';
import type { BorderMode } from './borders.js';
import { LARGEST_SIDE, type Padding } from './crops.js';
import type { DrawnSteps } from './drawn-steps.js';
import type { Effect, Rgb } from './effects.js';
import type { RotateEffect } from './steps/geometry/rotation.js';

/**
 * One run of the resize kernel, then a border, then effects. `source` is the part of the pass's input that the axes refer
 * to: x.source = source.width. The result is border.left + x.count + border.right pixels wide. If a count is 0, the result is
 * all border.
 */
export interface Pass {
  readonly source: Rect;
  readonly x: Axis;
  readonly y: Axis;
  readonly border: Border | null;
  /**
   * The flips that came before the resize. Undefined if there were none. Images do not depend on this, but masks do:
   * the position of the nearest pixel is rounded down, which selects a different pixel in a mirrored mask.
   */
  readonly flippedFirst?: { readonly x: boolean; readonly y: boolean };
  /** Undefined if there are no effects. */
  readonly effects?: readonly Effect[];
}

export interface Border extends Padding {
  /** Value of the border pixels: 0 to 255, or red, green and blue. */
  readonly fill: number | Rgb;
  /** Value of the border pixels of masks, 0 to 255. */
  readonly maskFill: number;
  /** How the border continues the image. Undefined: it has the values above. */
  readonly mode?: BorderMode;
}

/**
 * Collects the steps of one image as passes. Steps are merged into as few passes as give the same pixels: crops and flips join
 * the resize before or after them. A second resize, a crop of a border, and a crop or flip after an effect start a new pass.
 */
export class Canvas {
  readonly #passes: Pass[] = [];
  #draft: Draft;
  /** Number of the passes that later steps must not change. */
  #closed = 0;

  /** `annotations` move with the image; `drawn` records what steps drew. */
  constructor(
    image: Size,
    readonly annotations: Annotations | null = null,
    readonly drawn: DrawnSteps | null = null,
  ) {
    this.#draft = draftOf(image);
  }

  /**
   * Ends the steps that all views of an image share. If they resample or change pixels, their passes are kept apart, so that they
   * can run once for all views. Returns the number of these passes: 0 if the steps only crop and flip.
   */
  closeShared(): number {
    if (this.#passes.length === 0 && this.#draft.resized === null) return 0;
    if (this.#passes.length === 0 || !isUntouched(this.#draft, resultOf(this.#passes.at(-1)!))) this.#finish(null);
    this.#closed = this.#passes.length;
    return this.#closed;
  }

  /** Size of the image after the steps so far. */
  get size(): Size {
    return sizeOf(this.#draft);
  }

  /** Crops to a rectangle. Parts outside the image become a border with the values `fill` and `maskFill`. */
  crop(rect: Rect, fill: number | Rgb, maskFill = 0): void {
    this.annotations?.crop(rect);
    this.drawn?.crop(rect);
    const border = cropDraft(this.#draft, rect, fill, maskFill);
    if (border !== null) this.#finish(border);
  }

  /** Adds pixels around the image. They have the values `fill` and `maskFill`, or, with `mode`, continue the image. */
  pad(padding: Padding, fill: number | Rgb, maskFill = 0, mode?: BorderMode): void {
    const { left, top, right, bottom } = padding;
    const { width, height } = this.size;
    if (mode !== undefined) {
      if (left + top + right + bottom > 0) this.#finish({ ...padding, fill: 0, maskFill: 0, mode });
      return;
    }
    this.crop({ x: -left, y: -top, width: left + width + right, height: top + height + bottom }, fill, maskFill);
  }

  resize(size: Size, filter: Filter = 'bilinear'): void {
    this.annotations?.resize(this.size, size);
    this.drawn?.resize(this.size, size);
    const { resized, flipX, flipY } = this.#draft;
    // The nearest pixel of a mirrored image is a different one, as its position is rounded down.
    const isNearest = filter === 'nearest' || filter === 'nearest-exact';
    if (resized !== null || (isNearest && (flipX || flipY))) this.#finish(null);
    resizeDraft(this.#draft, size, filter);
  }

  /** Mirrors left and right (x), or top and bottom (y). */
  flip(axis: 'x' | 'y'): void {
    this.annotations?.flip(axis, this.size);
    this.drawn?.flip(axis, this.size);
    if (axis === 'x') this.#draft.flipX = !this.#draft.flipX;
    else this.#draft.flipY = !this.#draft.flipY;
  }

  /** Rotates the image. With `expands`, the result holds the whole rotated image. */
  rotate(effect: RotateEffect, expands: boolean): void {
    this.annotations?.rotate(effect, this.size, expands);
    this.drawn?.rotate();
    this.applyEffects([effect]);
  }

  /** Applies an effect that moves the points of the image by `moved`. The size stays. */
  warp(effect: Effect, moved: (x: number, y: number) => readonly [number, number]): void {
    this.annotations?.warp(moved, this.size);
    this.applyEffects([effect]);
  }

  /** Applies effects to the image after the steps so far. */
  applyEffects(effects: readonly Effect[]): void {
    if (effects.length === 0) return;
    const passes = this.#passes;
    if (passes.length === this.#closed || !isUntouched(this.#draft, resultOf(passes.at(-1)!))) this.#finish(null);
    const last = passes.pop()!;
    const pass = { ...last, effects: [...(last.effects ?? []), ...effects] };
    passes.push(pass);
    this.#draft = draftOf(resultOf(pass));
  }

  /** The passes of all steps. The last pass writes `layout`. Throws SampleDecodeError if the result of a pass is too large. */
  passes(layout: PixelLayout): readonly Pass[] {
    const passes = this.#passes;
    // Borders and effects are drawn on interleaved bytes. Another layout needs one more pass.
    const last = passes.at(-1);
    const isOpen = last !== undefined && passes.length > this.#closed;
    const finished = isOpen && layout === 'uint8-nhwc' && isUntouched(this.#draft, resultOf(last));
    if (!finished) this.#finish(null);
    passes.forEach((pass, i) => {
      checkSides(pass, i === passes.length - 1 ? layout : 'uint8-nhwc');
    });
    return passes;
  }

  #finish(border: Border | null): void {
    const pass = passOf(this.#draft, border);
    this.#passes.push(pass);
    this.#draft = draftOf(resultOf(pass));
  }
}

function checkSides(pass: Pass, layout: PixelLayout): void {
  const { x, y } = pass;
  if (Math.max(x.count, y.count) <= LARGEST_SIDE || isCopy(pass, layout)) return;
  throw new SampleDecodeError(
    {},
    sentence`the transform makes it ${x.count}x${y.count} pixels, more than ${LARGEST_SIDE} per side: add a crop, or set maxSize or a size of [height, width] for resize`,
  );
}

/** Whether a pass only copies a part of its input. Then it does not need the kernel. */
export function isCopy({ x, y }: Pass, layout: PixelLayout): boolean {
  return layout === 'uint8-nhwc' && x.source === x.output && y.source === y.output && !x.flip && !y.flip;
}

/** The size of the result of a pass. */
export function resultOf(pass: Pass): Size {
  const turned = pass.effects?.findLast((effect) => effect.kind === 'rotate');
  return turned?.size ?? borderedOf(pass);
}

/** The size of the result of a pass, with its border and before its effects. */
export function borderedOf({ x, y, border }: Pass): Size {
  return {
    width: x.count + (border === null ? 0 : border.left + border.right),
    height: y.count + (border === null ? 0 : border.top + border.bottom),
  };
}

/**
 * A pass that is not finished yet: a crop of its input, an optional resize, a window of the resized image, and flips.
 */
interface Draft {
  crop: Rect;
  resized: Size | null;
  /** How the image is resized. Undefined: bilinear. */
  filter: Filter | undefined;
  window: Rect;
  flipX: boolean;
  flipY: boolean;
  /** The flips that came before the resize. */
  flippedFirst: { readonly x: boolean; readonly y: boolean } | null;
}

function draftOf({ width, height }: Size): Draft {
  const all = { x: 0, y: 0, width, height };
  return { crop: all, resized: null, filter: undefined, window: all, flipX: false, flipY: false, flippedFirst: null };
}

function isUntouched({ crop, resized, flipX, flipY }: Draft, input: Size): boolean {
  return resized === null && !flipX && !flipY && crop.width === input.width && crop.height === input.height;
}

function sizeOf(draft: Draft): Size {
  return draft.resized === null ? draft.crop : draft.window;
}

function resizeDraft(draft: Draft, size: Size, filter: Filter): void {
  draft.resized = size;
  draft.filter = filter === 'bilinear' ? undefined : filter;
  if (draft.flipX || draft.flipY) draft.flippedFirst = { x: draft.flipX, y: draft.flipY };
  draft.window = { x: 0, y: 0, ...size };
}

/** Crops a draft to the part of `rect` that is inside the image. Returns the border to add, or null if `rect` is completely inside. */
function cropDraft(draft: Draft, rect: Rect, fill: number | Rgb, maskFill: number): Border | null {
  const size = sizeOf(draft);
  const left = clamp(rect.x, size.width);
  const top = clamp(rect.y, size.height);
  const right = clamp(rect.x + rect.width, size.width);
  const bottom = clamp(rect.y + rect.height, size.height);
  const width = right - left;
  const height = bottom - top;
  const x = draft.flipX ? size.width - right : left;
  const y = draft.flipY ? size.height - bottom : top;
  if (draft.resized === null) {
    draft.crop = { x: draft.crop.x + x, y: draft.crop.y + y, width, height };
    draft.window = draft.crop;
  } else draft.window = { x: draft.window.x + x, y: draft.window.y + y, width, height };
  if (width === rect.width && height === rect.height) return null;
  const before = { left: Math.min(left - rect.x, rect.width), top: Math.min(top - rect.y, rect.height) };
  return {
    ...before,
    right: rect.width - width - before.left,
    bottom: rect.height - height - before.top,
    fill,
    maskFill,
  };
}

function clamp(value: number, size: number): number {
  return Math.max(0, Math.min(value, size));
}

function passOf(draft: Draft, border: Border | null): Pass {
  const { crop, resized, filter, window, flipX, flipY, flippedFirst } = draft;
  const part = resized === null ? { x: 0, y: 0, width: crop.width, height: crop.height } : window;
  // Written out, because spreading into new objects took as long as the rest of the plan.
  const pass: Pass = {
    source: crop,
    x: {
      source: crop.width,
      output: resized === null ? crop.width : resized.width,
      first: part.x,
      count: part.width,
      flip: flipX,
      filter,
    },
    y: {
      source: crop.height,
      output: resized === null ? crop.height : resized.height,
      first: part.y,
      count: part.height,
      flip: flipY,
      filter,
    },
    border,
  };
  return flippedFirst === null ? pass : { ...pass, flippedFirst };
}
