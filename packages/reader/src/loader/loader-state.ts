import type { MixtureState } from '../mixture/mixture-state.js';
import { type DatasetState, StateError } from '../order/state.js';
import type { DecodeMode } from '../transform/plan.js';
import type { BucketState } from './setup/bucket-order.js';

/** Which sample comes next, of a dataset or of a mixture. */
export type OrderState = (DatasetState | MixtureState) & { readonly buckets?: BucketState };

/**
 * Where a run is, exact to the sample: plain JSON of about 300 bytes, the same on all ranks. It may be taken up by another
 * number of ranks, at another batch size, with another `lastBatch`; all else decides the order, or the pixels, and has to stay.
 */
export type LoaderState = OrderState & { readonly decode: DecodeMode };

/** How images are decoded: as before where a run goes on. Throws {@link StateError} where something else is asked for. */
export function decodeModeOf(asked: DecodeMode | undefined, state: unknown): DecodeMode {
  if (state === undefined) return asked ?? 'scaled';
  // States of before there was a choice do not say.
  const { decode = 'scaled' } = (state ?? {}) as { decode?: DecodeMode };
  if (!['exact', 'scaled', 'fast'].includes(decode)) {
    throw new StateError({}, `This is not a state that a loader gave (decode: ${JSON.stringify(decode)}).`);
  }
  if (asked === undefined || asked === decode) return decode;
  throw new StateError(
    {},
    `The state was saved with decode ${decode}, but decode is ${asked} now, which would be other pixels: leave decode as it ` +
      'was, or start without a state.',
  );
}
