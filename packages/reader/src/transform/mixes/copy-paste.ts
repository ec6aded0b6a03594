/** Copy-paste: objects of a row are pasted into another row (Ghiasi et al., "Simple copy-paste is a strong data augmentation", 2021). */

import type { Random } from '../random.js';
import type { ObjectRule } from './mosaic.js';

/** The checked parameters of the mix `copyPaste`. */
export interface CopyPaste extends ObjectRule {
  readonly name: 'copyPaste';
  /** Probability that objects are pasted into a row. */
  readonly p: number;
  /** Probability of each object of the other row to be pasted. */
  readonly objectP: number;
}

export interface DrawnCopyPaste {
  readonly kind: 'paste';
  /** Index of the mix in the list of the loader. */
  readonly index: number;
  readonly rule: ObjectRule;
  readonly objectP: number;
  /** One for each row: the key of the random numbers that choose objects of the row before. Null if the row does not change. */
  readonly keys: readonly (readonly [number, number] | null)[];
}

/** Draws three random numbers for each row: whether objects are pasted, and the key. */
export function drawCopyPaste(
  { p, objectP, minSize, minVisibility }: CopyPaste,
  { rows, index }: { rows: number; index: number },
  random: Random,
): DrawnCopyPaste {
  const keys = Array.from({ length: rows }, () => {
    const isPasted = random.next() < p;
    const key = [random.next(), random.next()] as const;
    return isPasted ? key : null;
  });
  return { kind: 'paste', index, rule: { minSize, minVisibility }, objectP, keys };
}
