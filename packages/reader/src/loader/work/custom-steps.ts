/** A person's own code in the workers: on the fields of a sample, on its pixels, or on a whole batch. */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { OptionError } from '@shardtool/base';
import type { Dtype } from '../../transform/values.js';

/** Where the code is, as plain data. */
export interface CustomStep {
  /** Path of a JavaScript module, from the working directory on, or a file: URL. */
  readonly module: string;
  /** Name of the function that it exports. Default `default`. */
  readonly export?: string;
  /** Goes to the function as it is: JSON. */
  readonly options?: unknown;
}

export interface CustomSteps {
  /** A {@link FieldsStep}. */
  readonly fields?: CustomStep;
  /** A {@link PixelsStep}. */
  readonly pixels?: CustomStep;
  /** A {@link BatchStep}. */
  readonly batch?: CustomStep;
}

/** What every step is told. */
export interface StepContext {
  readonly epoch: number;
  /** The sample's number in the dataset; of a batch, that of its first sample. */
  readonly number: number;
  /** The sample's next random number, 0 up to 1: the same whichever worker has it, and none that the transform draws. */
  random(): number;
  readonly options: unknown;
}

/**
 * Before decoding. `fields` has the encoded image as `image`, more images, masks and other fields by name; the bytes are
 * valid until the step returns. Returns those that are to be decoded instead (others stay), or null to drop the sample.
 */
export type FieldsStep = (
  fields: Readonly<Record<string, Uint8Array>>,
  context: StepContext,
) => Fields | null | Promise<Fields | null>;
type Fields = Readonly<Record<string, Uint8Array>>;

/** What pixels are: `shape` [height, width, 3] or [3, height, width]. float16 comes as bytes. */
export interface PixelsContext extends StepContext {
  readonly shape: readonly [number, number, number];
  readonly dtype: Dtype;
  /** How often the codec found something odd in the encoded image, and went on: 0 for most. */
  readonly warnings: number;
}

/** On the finished pixels of a sample, in place. Returns null to drop the sample. */
export type PixelsStep = (
  pixels: Uint8Array | Float32Array,
  context: PixelsContext,
) => undefined | null | Promise<undefined | null>;

/** A batch whose rows are all there; everything may be changed in place. */
export interface StepBatch {
  readonly images: Uint8Array | Float32Array;
  /** [n, height, width, 3] or [n, 3, height, width]. */
  readonly shape: readonly [number, number, number, number];
  readonly dtype: Dtype;
  readonly labels: Int32Array;
  readonly masks: Readonly<Record<string, Uint8Array>>;
  readonly extraImages: Readonly<Record<string, Uint8Array | Float32Array>>;
}

/** On a whole batch, in place, before it is mixed. */
export type BatchStep = (batch: StepBatch, context: StepContext) => undefined | Promise<undefined>;

type Step = (...values: never[]) => unknown;
/** A loaded step with its options. */
export interface LoadedStep<Kind extends Step> {
  readonly run: Kind;
  readonly options: unknown;
}

const PLACES = ['fields', 'pixels', 'batch'];
const PARTS = ['module', 'export', 'options'];

/** Whether somebody's value is {@link CustomSteps}, without any other name in it. */
export function isCustomSteps(value: unknown): value is CustomSteps {
  return isRecord(value) && Object.entries(value).every(([place, step]) => PLACES.includes(place) && isStep(step));
}

function isStep(step: unknown): boolean {
  if (step === undefined) return true;
  if (!isRecord(step) || !Object.keys(step).every((part) => PARTS.includes(part))) return false;
  const { module, export: name } = step;
  return typeof module === 'string' && module !== '' && (name === undefined || typeof name === 'string');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Makes paths whole: a worker may have another idea of what they are relative to. */
export function resolveStep(step: CustomStep): CustomStep {
  const { module } = step;
  return { ...step, module: module.startsWith('file:') ? module : pathToFileURL(path.resolve(module)).href };
}

/** Loads the function in this thread. Throws {@link OptionError} where there is none. */
export async function loadStep<Kind extends Step>(
  kind: string,
  step: CustomStep | undefined,
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
    `The step "${kind}" is to be "${name}" of ${step.module}, which exports no such function; it exports ` +
      `${Object.keys(exports).join(', ') || 'nothing'}.`,
  );
}
