/** Custom steps: the user's code in the workers, on the fields of a sample, on its pixels, or on a whole batch. */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PixelValues } from '../../transform/pixel-values.js';
import type { Dtype } from '../../transform/values.js';

/** Where a custom step is defined. Workers load it, so it is a module and not a function. */
export interface CustomStep {
  /**
   * A JavaScript module: `new URL('./steps.mjs', import.meta.url)`, a path relative to the working directory, or a file: URL
   * as text.
   */
  readonly module: string | URL;
  /** Name of the exported function. Default: `default`. */
  readonly export?: string;
  /** Passed to the function unchanged. Must be JSON. */
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

/** The context that every custom step receives. */
export interface StepContext {
  readonly epoch: number;
  /** Index of the sample in the dataset. For a batch, index of its first sample. */
  readonly number: number;
  /** The sample's next random number, at least 0 and less than 1. It does not depend on the worker, and the transform does not use it. */
  random(): number;
  readonly options: unknown;
}

/**
 * Runs before decoding. `fields` has the encoded image as `image`, and further images, masks and other fields by name. The bytes are
 * valid until the step returns. Returns the fields to replace, or null to drop the sample.
 */
export type FieldsStep = (
  fields: Readonly<Record<string, Uint8Array>>,
  context: StepContext,
) => Fields | null | Promise<Fields | null>;
type Fields = Readonly<Record<string, Uint8Array>>;

/** The format of pixels. `shape` is [height, width, channels] or [channels, height, width]. float16 values are passed as bytes. */
export interface PixelsContext extends StepContext {
  readonly shape: readonly [number, number, number];
  readonly dtype: Dtype;
  /** Number of warnings of the codec about the encoded image. */
  readonly warnings: number;
}

/** Changes the finished pixels of a sample in place. Returns null to drop the sample. */
export type PixelsStep = (pixels: PixelValues, context: PixelsContext) => undefined | null | Promise<undefined | null>;

/** A complete batch. A step may change everything in place. */
export interface StepBatch {
  readonly images: PixelValues;
  /** [n, height, width, channels] or [n, channels, height, width]. */
  readonly shape: readonly [number, number, number, number];
  readonly dtype: Dtype;
  readonly labels: Int32Array;
  readonly masks: Readonly<Record<string, Uint8Array>>;
  readonly extraImages: Readonly<Record<string, PixelValues>>;
}

/** Changes a whole batch in place, before it is mixed. */
export type BatchStep = (batch: StepBatch, context: StepContext) => undefined | Promise<undefined>;

const PLACES = ['fields', 'pixels', 'batch'];
const PARTS = ['module', 'export', 'options'];

/** Whether a value is {@link CustomSteps}, without other keys. */
export function isCustomSteps(value: unknown): value is CustomSteps {
  return isRecord(value) && Object.entries(value).every(([place, step]) => PLACES.includes(place) && isStep(step));
}

function isStep(step: unknown): boolean {
  if (step === undefined) return true;
  if (!isRecord(step) || !Object.keys(step).every((part) => PARTS.includes(part))) return false;
  const { module, export: name } = step;
  const isModule = typeof module === 'string' ? module !== '' : module instanceof URL && module.protocol === 'file:';
  return isModule && (name === undefined || typeof name === 'string');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Makes paths absolute, because a worker may have another working directory. */
export function resolveStep(step: CustomStep): ResolvedStep {
  const module = String(step.module);
  return { ...step, module: module.startsWith('file:') ? module : pathToFileURL(path.resolve(module)).href };
}

/** A step whose module is a file: URL as text, which can be sent to a worker. */
export type ResolvedStep = CustomStep & { readonly module: string };

/** {@link CustomSteps} that can be sent to a worker. */
export interface ResolvedSteps {
  readonly fields?: ResolvedStep;
  readonly pixels?: ResolvedStep;
  readonly batch?: ResolvedStep;
}
