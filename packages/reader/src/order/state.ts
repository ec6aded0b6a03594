import { OptionError, optionName, sentence } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import { MIXTURE_VERSION, ORDER_VERSION } from './words.js';

/** A state cannot be used here. The message gives the reason. */
export class StateError extends OptionError {
  static override readonly kind: string = 'StateError';
}

const whole = z.number().int().nonnegative();
const positive = z.number().int().positive();

const schema = z.object({
  /** Version of the order. */
  version: z.literal(ORDER_VERSION),
  /** The dataset's identity, from its manifest. */
  dataset: z.string(),
  /** The selection's identity, or '' if everything is selected. */
  selection: z.string(),
  seed: whole,
  epoch: whole,
  streams: positive,
  blockSamples: positive,
  unit: z.enum(['sample', 'shard', 'chunk']),
  shuffle: z.boolean(),
  /** Null if an epoch is one pass. */
  epochSamples: positive.nullable(),
  /** How often each sample comes in a pass. Absent: once. */
  repeats: positive.optional(),
  globalBatch: positive,
  lastBatch: z.enum(['pad', 'drop', 'partial']),
  /** Samples of the epoch that were delivered, over all ranks. */
  position: whole,
});

/**
 * The exact position of a run: plain JSON of about 300 bytes, the same on all ranks. A run may resume from it with
 * another number of ranks, another batch size and another `lastBatch`. All other values determine the order, and must
 * stay the same.
 */
export type DatasetState = Readonly<z.output<typeof schema>>;

/** The loader that resumes from a state. Optional values that are given must be equal to those of the state. */
export interface StateContext {
  readonly dataset: string;
  readonly selection: string;
  readonly shuffle?: boolean | undefined;
  readonly epochSamples?: number | undefined;
  readonly repeats?: number | undefined;
  readonly seed?: number | undefined;
  readonly streams?: number | undefined;
  readonly blockSamples?: number | undefined;
  readonly unit?: DatasetState['unit'] | undefined;
}

/** The loader's option that decides each of these keys of a state. */
const OPTION_OF = {
  seed: 'seed',
  streams: 'streams',
  blockSamples: 'blockSamples',
  unit: 'shuffleUnit',
  shuffle: 'shuffle',
  epochSamples: 'samplesPerEpoch',
  repeats: 'repeats',
} as const;

/**
 * Checks a saved state. Throws {@link StateError} if it is not a state, is of a newer version, belongs to another
 * dataset or selection, or contradicts an option.
 */
export function takeUpState(given: unknown, context: StateContext): DatasetState {
  const state = parseState(given);
  if (state.dataset !== context.dataset) {
    throw new StateError(
      {},
      `The state belongs to another dataset (its identity is ${state.dataset}, that of this dataset ${context.dataset}): open the dataset ` +
        'with which it was saved, or start without a state.',
    );
  }
  if (state.selection !== context.selection) {
    throw new StateError(
      {},
      `The state belongs to another selection (${state.selection || 'all samples'}, but this is ` +
        `${context.selection || 'all samples'}): use the same classes, keys, where and weights, or start without a state.`,
    );
  }
  for (const [name, option] of Object.entries(OPTION_OF) as [keyof typeof OPTION_OF, string][]) {
    const chosen = context[name];
    const saved = name === 'repeats' ? (state.repeats ?? 1) : state[name];
    if (chosen === undefined || chosen === saved) continue;
    throw new StateError(
      {},
      sentence`The state was saved with ${optionName(option)} ${saved ?? 'unset'}, but ${optionName(option)} is ${chosen} now, which would change the order: use the earlier ${optionName(option)}, or start without a state.`,
    );
  }
  return state;
}

/** Checks only the shape of a state. Throws {@link StateError}. */
export function parseState(saved: unknown): DatasetState {
  const version = (saved as { version?: unknown } | null | undefined)?.version;
  if (version === MIXTURE_VERSION) {
    throw new StateError(
      {},
      'The state belongs to a mixture, but this is a single dataset: open the mixture, or start without a state.',
    );
  }
  if (typeof version === 'number' && version > ORDER_VERSION) {
    throw new StateError(
      {},
      `The state is for version ${version} of the order, but this shardtool knows versions up to ${MIXTURE_VERSION}: update shardtool.`,
    );
  }
  return parseShape(schema, saved, ({ where, what }, cause) => {
    return new StateError({}, `This is not a state of a loader (${where || 'it'} ${what}).`, { cause });
  });
}
