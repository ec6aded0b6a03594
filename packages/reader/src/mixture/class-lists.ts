import { OptionError, optionName, sentence } from '@shardtool/base';

/**
 * How the class lists of several datasets are combined. `name`: classes of the same name become one. `offset`: the
 * classes of each dataset are numbered after those of the datasets before it. `apart`: class numbers do not change, and
 * `batch.datasetIndex` tells the datasets apart.
 */
export type ClassLists = 'name' | 'offset' | 'apart';

export interface JoinedClasses {
  readonly classes: readonly string[];
  /** Samples of each class, over all datasets. */
  readonly classSamples: readonly number[];
  /** For each dataset, the new number of each class. Null: numbers do not change. */
  readonly numbers: readonly (Int32Array | null)[];
}

interface OwnClasses {
  readonly name: string;
  readonly classes: readonly string[];
  readonly classSamples: readonly number[];
}

/**
 * Joins the class lists. Throws {@link OptionError} if datasets with and without class names would be joined by name.
 */
export function joinClasses(lists: readonly OwnClasses[], how: ClassLists): JoinedClasses {
  if (how === 'apart') return { classes: [], classSamples: [], numbers: lists.map(() => null) };
  if (how === 'name') {
    const nameless = lists.find(({ classes }) => classes.length === 0);
    const named = lists.find(({ classes }) => classes.length > 0);
    if (nameless !== undefined && named !== undefined) {
      throw new OptionError(
        {},
        sentence`${named.name} has class names and ${nameless.name} has none, so their classes cannot be joined by name: set ${optionName('classLists')} to 'apart'. If ${nameless.name} has no classes at all, 'offset' works too.`,
      );
    }
    if (named === undefined) return { classes: [], classSamples: [], numbers: lists.map(() => null) };
  }
  const classes: string[] = [];
  const classSamples: number[] = [];
  const known = new Map<string, number>();
  const numbers = lists.map((list) =>
    Int32Array.from(list.classes, (name, cls) => {
      let number = how === 'name' ? known.get(name) : undefined;
      if (number === undefined) {
        number = classes.length;
        classes.push(name);
        classSamples.push(0);
        known.set(name, number);
      }
      classSamples[number]! += list.classSamples[cls] ?? 0;
      return number;
    }),
  );
  return { classes, classSamples, numbers };
}
