/** The parameters of a step, as data. */
import type { z } from 'zod';
import type { Kind } from './kinds.js';

/** A parameter of a step: its kind, its default and its help text. */
export interface Parameter<Check extends z.ZodType = z.ZodType> extends Kind<Check> {
  /** The default, as a user would write it. */
  readonly default?: unknown;
  /** The parameter may be omitted although it has no default. */
  readonly isOptional?: boolean;
  readonly help: string;
}
export type Parameters = Readonly<Record<string, Parameter>>;

/** A required parameter. */
export function needed<Check extends z.ZodType>(kind: Kind<Check>, help: string): Parameter<Check> {
  return { ...kind, help };
}

/** A parameter with a default. `value` is the default as a user would write it. */
export function defaulted<Check extends z.ZodType>(
  kind: Kind<Check>,
  value: z.input<Check>,
  help: string,
): Parameter<z.ZodPrefault<Check>> {
  return { ...kind, check: (z) => kind.check(z).prefault(value as never), default: value, help };
}

/** A parameter without a default that may be omitted. */
export function optional<Check extends z.ZodType>(kind: Kind<Check>, help: string): Parameter<z.ZodOptional<Check>> {
  return { ...kind, check: (z) => kind.check(z).optional(), isOptional: true, help };
}
