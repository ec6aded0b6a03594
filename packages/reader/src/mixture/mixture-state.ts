import { OptionError, optionName, sentence } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import { StateError } from '../order/state.js';
import { MIXTURE_VERSION } from '../order/words.js';

const whole = z.number().int().nonnegative();
const positive = z.number().int().positive();

const schema = z.object({
  version: z.literal(MIXTURE_VERSION),
  seed: whole,
  epoch: whole,
  /** Number of consecutive samples of a dataset, and number of such groups that are shuffled together. */
  group: positive,
  window: positive,
  shuffle: z.boolean(),
  globalBatch: positive,
  lastBatch: z.enum(['pad', 'drop', 'partial']),
  /** Samples of the epoch that were delivered, over all ranks. */
  position: whole,
  /** Weights that have replaced those of the mixture during the run; null if they were not replaced. */
  weights: z.array(z.number().positive()).nullable(),
  sources: z.array(
    z.object({
      dataset: z.string(),
      selection: z.string(),
      streams: positive,
      blockSamples: positive,
      unit: z.enum(['sample', 'shard', 'chunk']),
      /** Number of samples in an epoch. */
      samples: whole,
      /** Number of samples before this epoch, if it is not epoch times `samples`. */
      base: whole.nullable(),
    }),
  ),
});

/**
 * The position of a run over a mixture, exact to the sample: plain JSON of about 150 bytes per dataset, the same on all
 * ranks. A run with another number of ranks or another batch size can resume from it.
 */
export type MixtureState = Readonly<z.output<typeof schema>>;

/** The loader that resumes from a state. Optional values that are given must be equal to those of the state. */
export interface MixtureStateContext {
  readonly sources: readonly { readonly name: string; readonly dataset: string; readonly selection: string }[];
  /** Samples of each dataset in an epoch, according to the weights of the mixture. */
  readonly samples: readonly number[];
  readonly seed?: number | undefined;
  readonly shuffle?: boolean | undefined;
  readonly group?: number | undefined;
  readonly window?: number | undefined;
}

/** Checks a saved state of a mixture. Throws {@link StateError}. */
export function takeUpMixtureState(saved: unknown, context: MixtureStateContext): MixtureState {
  const { version } = (saved ?? {}) as { version?: unknown };
  if (version === 1) {
    throw new StateError(
      {},
      'The state belongs to a single dataset, but this is a mixture: open that dataset, or start without a state.',
    );
  }
  if (typeof version === 'number' && version > MIXTURE_VERSION) {
    throw new StateError(
      {},
      `The state is for version ${version} of the order, but this shardtool knows versions up to ${MIXTURE_VERSION}: update shardtool.`,
    );
  }
  const state = parseShape(schema, saved, ({ where, what }, cause) => {
    return new StateError({}, `This is not a state of a loader (${where || 'it'} ${what}).`, { cause });
  });
  checkSources(state, context);
  for (const name of ['seed', 'shuffle', 'group', 'window'] as const) {
    const chosen = context[name];
    if (chosen === undefined || chosen === state[name]) continue;
    throw new StateError(
      {},
      sentence`The state was saved with ${optionName(name)} ${state[name]}, but ${optionName(name)} is ${chosen} now, which would change the order: use the earlier ${optionName(name)}, or start without a state.`,
    );
  }
  return state;
}

function checkSources(state: MixtureState, { sources, samples }: MixtureStateContext): void {
  if (state.sources.length !== sources.length) {
    throw new StateError(
      {},
      `The state belongs to a mixture of ${state.sources.length} datasets, but this one has ${sources.length}: open the ` +
        'mixture with which it was saved, or start without a state.',
    );
  }
  for (const [i, { name, dataset, selection }] of sources.entries()) {
    const saved = state.sources[i]!;
    if (saved.dataset !== dataset || saved.selection !== selection) {
      throw new StateError(
        {},
        `The state was saved with ${saved.dataset !== dataset ? 'another dataset' : 'another selection'} in place of ${name}: ` +
          'open the same datasets in the same order with the same selections, or start without a state.',
      );
    }
    if (state.weights === null && saved.samples !== samples[i]) {
      throw new StateError(
        {},
        sentence`The state was saved with ${saved.samples} samples of ${name} in an epoch, but now it would be ${samples[i]}: keep the earlier weights and samplesPerEpoch, or convert the state with the loader's withWeights.`,
      );
    }
  }
}

/** Throws {@link OptionError} for an invalid list of weights. */
export function checkWeights(weights: readonly number[], sources: number): void {
  if (weights.length === sources) return;
  throw new OptionError(
    {},
    `There are ${weights.length} weights for the ${sources} datasets of the mixture: give one weight per dataset.`,
  );
}
