import { sortByCodePoint } from '@shardtool/base';

/** The class lists of several shards merged into one list, and the number that each class of each shard gets in it. */
export interface ClassUnion {
  readonly classes: readonly string[];
  /** New class numbers by shard; null for a shard whose numbers stay the same. */
  readonly numbers: readonly (readonly number[] | null)[];
}

/** Merges class lists. Equal lists stay unchanged; different lists are joined by name, in code point order. */
export function uniteClasses(lists: readonly (readonly string[])[]): ClassUnion {
  const [first = []] = lists;
  const isSame = (a: readonly string[], b: readonly string[]) =>
    a.length === b.length && a.every((name, i) => name === b[i]);
  if (lists.every((list) => isSame(list, first))) return { classes: first, numbers: lists.map(() => null) };
  const classes = sortByCodePoint([...new Set(lists.flat())]);
  const numberOf = new Map(classes.map((name, number) => [name, number]));
  return {
    classes,
    numbers: lists.map((list) => (isSame(list, classes) ? null : list.map((name) => numberOf.get(name)!))),
  };
}

/** Maps the class numbers of a shard to those of the union. Numbers that the shard's list does not name become -1. */
export function renumberClasses(cls: Int32Array, numbers: readonly number[] | null): Int32Array {
  return numbers === null ? cls : cls.map((number) => numbers[number] ?? -1);
}
