import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { Parameter } from './parameters/parameter.js';
import type { StepInput } from './step-inputs.js';
import type { STEPS } from './step-table.js';

test('the type StepInput allows exactly what the step table checks', () => {
  type Table = typeof STEPS;
  /** The parameters of the zod schema. Optional ones have a question mark. */
  type Written<Name extends keyof Table> = Table[Name]['parameters'] extends infer P extends Record<string, Parameter>
    ? { readonly name: Name } & {
        readonly [Key in keyof P as undefined extends z.input<ReturnType<P[Key]['check']>> ? Key : never]?: z.input<
          ReturnType<P[Key]['check']>
        >;
      } & {
        readonly [Key in keyof P as undefined extends z.input<ReturnType<P[Key]['check']>> ? never : Key]: z.input<
          ReturnType<P[Key]['check']>
        >;
      }
    : never;
  // The schema of a container does not know the type of the steps within it.
  type Plain = { [Name in keyof Table]: Table[Name] extends { readonly nested: unknown } ? never : Name }[keyof Table];
  type Checked = { [Name in Plain]: Written<Name> }[Plain];
  type Input = Exclude<StepInput, { readonly transforms: unknown }>;
  expectTypeOf<Checked>().toExtend<Input>();
  expectTypeOf<Input>().toExtend<Checked>();
});
