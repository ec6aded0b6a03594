/** What a step of a transform is: one entry, with its parameters as data. */
import type { z } from 'zod';
import type { Canvas } from '../canvas.js';
import type { Size } from '../crops.js';
import type { Random } from '../random.js';
import type { ValuesUnderWay } from '../values.js';
import type { Kind, Zod } from './kinds.js';

/** A parameter: what it may be, what holds where it is left out, what it does. */
export interface Parameter<Check extends z.ZodType = z.ZodType> extends Kind<Check> {
  /** As it is written. */
  readonly default?: unknown;
  /** There is no default, and it may be left out. */
  readonly isOptional?: boolean;
  readonly help: string;
}
type Parameters = Readonly<Record<string, Parameter>>;

/** All parameters, those with a default filled in. */
type Output<Name extends string, P extends Parameters> = { readonly name: Name } & {
  readonly [Key in keyof P]: z.output<ReturnType<P[Key]['check']>>;
};

/** What is said of every step: docs, hover texts and Python's types are made of it. */
export interface About<P extends Parameters> {
  readonly help: string;
  /** torchvision's name; null: it has none of the kind. */
  readonly like: string | null;
  /** How far results are from torchvision's on the same pixels. */
  readonly tolerance: string;
  readonly parameters: P;
}

/** A step that chooses, resizes or changes pixels of bytes. */
interface PixelParts<S> {
  /** Why these parameters do not go together: where, and the sentence. */
  readonly check?: (step: S) => { readonly path: string; readonly message: string } | undefined;
  /** Why it cannot work on bytes: the end of a sentence. */
  readonly refusesBytes?: (step: S) => string | undefined;
  /** It goes by boxes: where none are given, it cannot be. */
  readonly needsBoxes?: boolean;
  /** Draws what is random of it, and says what becomes of the image. */
  readonly draw: (step: S, canvas: Canvas, random: Random) => void;
  /** The size of every result, by that before it, where all have one. Without it: as before. */
  readonly shape?: (step: S, before: Size | null) => Size | null;
  /** The largest picture that it makes; without it that follows from the one before. */
  readonly largest?: (step: S) => Size;
  /** The shorter sides that it resizes to. */
  readonly resizesTo?: (step: S) => readonly number[];
  /** Pixels are changed where they are, which is more than to take and resize some. */
  readonly isEffect?: boolean;
}

/** A step that says what values become. */
interface ValueParts<S> {
  /** Changes what values are to become, or says why it cannot stand here: the end of a sentence. */
  readonly settle: (step: S, values: ValuesUnderWay) => string | undefined;
}

export interface Checked<S> {
  readonly schema: (z: Zod) => z.ZodType<S>;
}

/** An entry of the table, whichever step's it is. */
export interface StepEntry<S> extends About<Parameters>, Checked<S>, Partial<PixelParts<S>>, Partial<ValueParts<S>> {}

/** A parameter that has to be given. */
export function needed<Check extends z.ZodType>(kind: Kind<Check>, help: string): Parameter<Check> {
  return { ...kind, help };
}

/** A parameter with a default, as it is written. */
export function defaulted<Check extends z.ZodType>(
  kind: Kind<Check>,
  value: z.input<Check>,
  help: string,
): Parameter<z.ZodPrefault<Check>> {
  return { ...kind, check: (z) => kind.check(z).prefault(value as never), default: value, help };
}

/** A parameter without a default that may be left out. */
export function optional<Check extends z.ZodType>(kind: Kind<Check>, help: string): Parameter<z.ZodOptional<Check>> {
  return { ...kind, check: (z) => kind.check(z).optional(), isOptional: true, help };
}

/** An entry of the table of steps. */
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
