import { blockAt, blockStart, type EpochOrder, streamAt, streamLength, streamStart } from './epoch-order.js';

/** The ranks that read on this machine, and the number of passes to look ahead. */
export interface Readers {
  /** Returns the order of a pass. */
  orderOf(pass: number): EpochOrder;
  /** True if a rank of this machine reads the stream. */
  isLocal(stream: number): boolean;
  /** Number of passes to look ahead. */
  readonly horizon: number;
}

/**
 * Returns the position in a pass at which this machine first needs one of `count` samples. They start at number `first`
 * and are neighbours in one unit. The position is that of loading the first of their blocks that a local rank reads, or
 * Infinity if no local rank reads them.
 */
export function firstNeed(order: EpochOrder, first: number, count: number, isLocal: Readers['isLocal']): number {
  const from = order.line.placeOf(first);
  let need = Number.POSITIVE_INFINITY;
  for (let place = from; place < from + count; ) {
    const s = streamAt(order, place);
    const start = streamStart(order, s);
    if (isLocal(s)) {
      // A stream's blocks are read in order, so the first sample decides.
      const block = blockAt(order, s, place - start);
      need = Math.min(need, blockStart(order, s, block) * order.streams + s);
    }
    place = start + streamLength(order, s);
  }
  return need;
}

/**
 * Returns the eviction key of something that was just used in `pass`; the largest key is evicted first. The key is the
 * number of samples over all ranks, from the beginning of the first pass, until this machine needs it again. It is
 * Infinity if none of the next passes within the horizon needs it. Evicting what will be needed furthest in the future
 * is optimal: L. A. Belady, A study of replacement algorithms for a virtual-storage computer (1966).
 */
export function nextUse({ orderOf, isLocal, horizon }: Readers, pass: number, first: number, count: number): number {
  for (let ahead = 1; ahead <= horizon; ahead++) {
    const order = orderOf(pass + ahead);
    const need = firstNeed(order, first, count, isLocal);
    if (need < Number.POSITIVE_INFINITY) return (pass + ahead) * order.samples + need;
  }
  return Number.POSITIVE_INFINITY;
}

/** Returns the number of passes to look ahead. The cache holds only data that is needed within a few passes. */
export function horizonOf(cacheBytes: number, bytesAPass: number): number {
  return Math.min(16, Math.max(1, Math.ceil((4 * cacheBytes) / Math.max(1, bytesAPass))));
}
