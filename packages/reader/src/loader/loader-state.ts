import type { MixtureState } from '../mixture/mixture-state.js';
import type { DatasetState } from '../order/state.js';

/**
 * Where a run is, exact to the sample: plain JSON of about 300 bytes, the same on all ranks. It may be taken up by another
 * number of ranks, at another batch size, with another `lastBatch`; all else decides the order and has to stay.
 */
export type LoaderState = DatasetState | MixtureState;
