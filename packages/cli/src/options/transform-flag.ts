import { readFile } from 'node:fs/promises';
import { reasonOf } from '@shardtool/base';
import type { AnnotationOptions, StepInput, TransformInput } from '@shardtool/reader';
import type { FlagSpec } from '../command.js';
import { UsageError } from '../terminal/outcome.js';

/** `--transform` of commands that transform images: the name of a preset, or a file with a list of steps. */
export const TRANSFORM_FLAG = {
  type: 'string',
  requiresArg: true,
  group: 'Images',
  placeholder: 'TRANSFORM',
  isCommon: true,
  defaultDescription: 'train224; with --aspect-buckets none',
  describe: 'A preset ("shardtool transforms" lists them), or a JSON file with a list of steps (docs/transforms.md)',
} as const satisfies FlagSpec;

/** `--annotations` of preview. */
export const ANNOTATIONS_FLAG = {
  type: 'string',
  requiresArg: true,
  group: 'Input',
  placeholder: 'FILE',
  describe:
    'JSON file that describes the fields of boxes, labels, keypoints and polygons, which are drawn (docs/detection.md)',
} as const satisfies FlagSpec;

/**
 * Returns the value of the flag, with boxes as corners. Throws {@link UsageError} for a file that cannot be read or is
 * not JSON.
 */
export async function readAnnotationsFlag(given: string | undefined): Promise<AnnotationOptions | undefined> {
  if (given === undefined) return undefined;
  try {
    return { ...(JSON.parse(await readFile(given, 'utf8')) as AnnotationOptions), boxFormat: 'xyxy' };
  } catch (cause) {
    throw new UsageError(
      `--annotations takes a JSON file, but ${given} cannot be read as JSON (${(cause as Error).message}).`,
    );
  }
}

/** Returns the value of the flag. Throws {@link UsageError} if it is neither a preset nor a JSON file. */
export async function readTransform(given: string | undefined, buckets?: unknown): Promise<TransformInput> {
  // With buckets, the transform must not set a size.
  if (given === undefined) return buckets === undefined ? 'train224' : [];
  const { PRESET_NAMES } = await import('@shardtool/reader');
  const preset = PRESET_NAMES.find((name) => name === given);
  if (preset !== undefined) return preset;
  let text: string;
  try {
    text = await readFile(given, 'utf8');
  } catch (cause) {
    throw new UsageError(
      `Unknown transform "${given}" for --transform. Choose train224, eval224 or a JSON file; ${given} cannot be read as a file: ${reasonOf(cause)}.`,
    );
  }
  try {
    return JSON.parse(text) as StepInput[];
  } catch (cause) {
    throw new UsageError(`${given} is not JSON (${(cause as Error).message}); it must contain a list of steps.`);
  }
}
