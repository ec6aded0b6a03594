import type { ColumnValue, SplitRule } from '@shardtool/format';
import { keyHash } from '../dataset/keys/key-hash.js';

/** The hash that decides the split of a sample: of its value in the column of the group, or of its key without one. */
export function splitHash(key: string, value: ColumnValue | undefined): number {
  return keyHash(value === null || value === undefined ? key : String(value));
}

/** Whether a sample with this hash and this number of a class is in a split. */
export type IsInSplit = (hash: number, cls: number) => boolean;

/** `classes`: names of the classes by their numbers. */
export function splitTest({ borders }: SplitRule, classes: readonly string[]): IsInSplit {
  const byName = new Map(borders.map(([cls, from, below]) => [cls, { from, below }]));
  const plain = byName.get(null)!;
  const byNumber = classes.map((name) => byName.get(name) ?? plain);
  return (hash, cls) => {
    const { from, below } = byNumber[cls] ?? byName.get(String(cls)) ?? plain;
    return hash >= from && hash < below;
  };
}
