/** The definition of a transform step: one entry of the step table. */
import type { z } from 'zod';
import type { Size } from '../../codec/codec.js';
import type { PixelDtype } from '../../codec/pixel-format.js';
import type { Canvas } from '../canvas.js';
import type { StepLists, Zod } from '../parameters/kinds.js';
import type { Parameters } from '../parameters/parameter.js';
import type { Random } from '../random.js';
import type { ValueSettings } from '../values.js';

/** A checked step: all parameters, with defaults filled in. */
type Output<Name extends string, P extends Parameters> = { readonly name: Name } & {
  readonly [Key in keyof P]: z.output<ReturnType<P[Key]['check']>>;
};

/** The description of a step. Docs, hover texts and the Python types are generated from it. */
export interface About<P extends Parameters> {
  readonly help: string;
  /** Name of the same transform in torchvision v2. Null if torchvision does not have it. */
  readonly like: string | null;
  /** How far results differ from those of torchvision for the same pixels. */
  readonly tolerance: string;
  readonly parameters: P;
}

/** Draws the random parameters of steps within a step, and applies them to the canvas. */
export type DrawSteps = (steps: readonly unknown[], canvas: Canvas, random: Random) => void;
/** The common size of all results of steps within a step. */
export type ShapeAfter = (steps: readonly unknown[], before: Size | null) => Size | null;

/** The functions of a step that crops, resizes or changes pixels while they are bytes. */
interface PixelParts<S> {
  /** Why these parameters cannot be combined: the parameter to name in the error, and the message. */
  readonly check?: (step: S) => { readonly path: string; readonly message: string } | undefined;
  /** Why the step cannot work on decoded pixels of this dtype: the end of a sentence. Undefined if it can. */
  readonly refusesPixels?: (step: S, dtype: PixelDtype) => string | undefined;
  /** The step depends on boxes. It is an error to use it without `annotations.boxes`. */
  readonly needsBoxes?: boolean;
  /** Why masks and annotations cannot follow the step: the end of a sentence. Undefined if they can. */
  readonly refusesAnnotations?: (step: S, option: 'masks' | 'annotations') => string | undefined;
  /** Number of pictures that the step needs in addition to those of an effect. */
  readonly extraPictures?: number;
  /** Draws the random parameters of the step, and applies the step to the canvas. */
  readonly draw: (step: S, canvas: Canvas, random: Random, drawSteps: DrawSteps) => void;
  /** The steps within the step, as lists. Its parameter `transforms` has them. */
  readonly nested?: (step: S) => StepLists;
  /**
   * The common size of all results, given the common size before the step. Null if sizes differ. If omitted, the step
   * keeps the size.
   */
  readonly shape?: (step: S, before: Size | null, shapeAfter: ShapeAfter) => Size | null;
  /** The largest picture that the step can make. If omitted, it is not larger than the picture before. */
  readonly largest?: (step: S) => Size;
  /** Number of pixels that the step adds around the whole image before it crops. If omitted: none. */
  readonly addsPixels?: (step: S) => number;
  /** The shorter sides that the step resizes to. */
  readonly resizesTo?: (step: S) => readonly number[];
  /** The half width of the widest resize filter of the step, in source pixels. If omitted: 1, bilinear. */
  readonly widestFilter?: (step: S) => number;
  /** The step changes pixel values in place, so cropping and resizing are not enough. */
  readonly isEffect?: boolean;
}

/** The function of a step that sets dtype, normalization or layout of the result. */
interface ValueParts<S> {
  /** Applies the step to `values`. If the step is not allowed at this position, returns the reason: the end of a sentence. */
  readonly settle: (step: S, values: ValueSettings) => string | undefined;
}

export interface Checked<S> {
  readonly schema: (z: Zod) => z.ZodType<S>;
}

/** An entry of the step table, for any step. */
export interface StepEntry<S> extends About<Parameters>, Checked<S>, Partial<PixelParts<S>>, Partial<ValueParts<S>> {}

/** Makes an entry of the step table. */
export function step<
  const Name extends string,
  P extends Parameters,
  Parts extends Partial<PixelParts<Output<Name, P>>> & Partial<ValueParts<Output<Name, P>>>,
>(
  name: Name,
  about: About<P>,
  parts: Parts & Partial<PixelParts<Output<Name, P>>>,
): About<P> & Checked<Output<Name, P>> & Parts {
  const schema = (z: Zod) => {
    const shape = Object.fromEntries(Object.entries(about.parameters).map(([key, { check }]) => [key, check(z)]));
    const whole = z.strictObject({ name: z.literal(name), ...shape });
    const checked = whole.superRefine((value, context) => {
      const wrong = parts.check?.(value as Output<Name, P>);
      if (wrong !== undefined) context.addIssue({ code: 'custom', path: [wrong.path], message: wrong.message });
    });
    return checked as unknown as z.ZodType<Output<Name, P>>;
  };
  return { ...about, ...parts, schema };
}
