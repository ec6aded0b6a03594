/** The classes of several shards as one list, and what number each class of each shard has in it. */
export interface ClassUnion {
  readonly classes: readonly string[];
  /** By shard; null where its numbers stay. */
  readonly numbers: readonly (readonly number[] | null)[];
}

/** Equal lists stay as they are; others are joined by name, in the order of their code points. */
export function uniteClasses(lists: readonly (readonly string[])[]): ClassUnion {
  const [first = []] = lists;
  const isSame = (a: readonly string[], b: readonly string[]) =>
    a.length === b.length && a.every((name, i) => name === b[i]);
  if (lists.every((list) => isSame(list, first))) return { classes: first, numbers: lists.map(() => null) };
  const classes = [...new Set(lists.flat())].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const numberOf = new Map(classes.map((name, number) => [name, number]));
  return {
    classes,
    numbers: lists.map((list) => (isSame(list, classes) ? null : list.map((name) => numberOf.get(name)!))),
  };
}

/** Class numbers of a shard as the union has them; those that its list does not name are none. */
export function renumberClasses(cls: Int32Array, numbers: readonly number[] | null): Int32Array {
  return numbers === null ? cls : cls.map((number) => numbers[number] ?? -1);
}
