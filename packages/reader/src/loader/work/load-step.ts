import { OptionError } from '@shardtool/base';
import type { ResolvedStep } from '../setup/custom-steps.js';

type Step = (...values: never[]) => unknown;
/** A loaded step with its options. */
export interface LoadedStep<Kind extends Step> {
  readonly run: Kind;
  readonly options: unknown;
}

/** Loads the function in this thread. Throws {@link OptionError} if the module does not export it. */
export async function loadStep<Kind extends Step>(
  kind: string,
  step: ResolvedStep | undefined,
): Promise<LoadedStep<Kind> | null> {
  if (step === undefined) return null;
  const name = step.export ?? 'default';
  let exports: Record<string, unknown>;
  try {
    exports = (await import(step.module)) as Record<string, unknown>;
  } catch (cause) {
    throw new OptionError(
      { path: step.module },
      `The step "${kind}" cannot be loaded from ${step.module}: ${(cause as Error).message}`,
      { cause },
    );
  }
  const run = exports[name];
  if (typeof run === 'function') return { run: run as Kind, options: step.options };
  throw new OptionError(
    { path: step.module },
    `The step "${kind}" should be the function "${name}" of ${step.module}, but that module exports only ` +
      `${Object.keys(exports).join(', ') || 'nothing'}.`,
  );
}
