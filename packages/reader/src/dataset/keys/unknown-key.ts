import { didYouMean } from '@shardtool/base';

/** Number of keys that an unknown key is compared with, to find a similar one. */
const COMPARED_KEYS = 20_000;

/** The keys of a dataset, for look-ups. */
export interface Keys {
  /** Returns the index of the first sample with this key, or -1. */
  numberOf(key: string): number | Promise<number>;
  /** Returns the first `count` keys. */
  first(count: number): readonly string[] | Promise<readonly string[]>;
}

/**
 * Returns a hint for an unknown key, such as `; did you mean "cat/1"?`, or ''. Of a large dataset, only the first keys
 * are compared.
 */
export async function hintOnUnknownKey(keys: Keys, key: string): Promise<string> {
  const stem = key.replace(/\.[^./]*$/, '');
  if (stem !== key && (await keys.numberOf(stem)) >= 0) {
    return `; keys have no extension: did you mean "${stem}"?`;
  }
  return didYouMean(key, await keys.first(COMPARED_KEYS));
}
