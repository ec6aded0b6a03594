import { blockAt, blockStart, type EpochOrder, streamAt, streamLength, streamStart } from './epoch-order.js';

/** Who reads on this machine, and how far is looked ahead. */
export interface Readers {
  /** The order of a pass. */
  orderOf(pass: number): EpochOrder;
  /** Whether a rank of this machine reads a stream. */
  isLocal(stream: number): boolean;
  /** Passes that are looked at. */
  readonly horizon: number;
}

/**
 * The position of a pass at which this machine first needs one of `count` samples from number `first` on, which are
 * neighbours in one unit: where the block of the first of them is loaded that a local rank reads. Infinity where none does.
 */
export function firstNeed(order: EpochOrder, first: number, count: number, isLocal: Readers['isLocal']): number {
  const from = order.line.placeOf(first);
  let need = Number.POSITIVE_INFINITY;
  for (let place = from; place < from + count; ) {
    const s = streamAt(order, place);
    const start = streamStart(order, s);
    if (isLocal(s)) {
      // A stream's blocks come in turn, so its first sample decides.
      const block = blockAt(order, s, place - start);
      need = Math.min(need, blockStart(order, s, block) * order.streams + s);
    }
    place = start + streamLength(order, s);
  }
  return need;
}

/**
 * The key by which what was just used in `pass` is evicted, largest first: the samples over all ranks, from the beginning
 * of the first pass on, until this machine needs it again. Infinity where none of the next passes within sight needs it.
 * Evicting what is needed last is optimal: L. A. Belady, A study of replacement algorithms for a virtual-storage computer
 * (1966).
 */
export function nextUse({ orderOf, isLocal, horizon }: Readers, pass: number, first: number, count: number): number {
  for (let ahead = 1; ahead <= horizon; ahead++) {
    const order = orderOf(pass + ahead);
    const need = firstNeed(order, first, count, isLocal);
    if (need < Number.POSITIVE_INFINITY) return (pass + ahead) * order.samples + need;
  }
  return Number.POSITIVE_INFINITY;
}

/** So many passes are worth looking ahead: the cache holds what is needed in a few of them. */
export function horizonOf(cacheBytes: number, bytesAPass: number): number {
  return Math.min(16, Math.max(1, Math.ceil((4 * cacheBytes) / Math.max(1, bytesAPass))));
}
