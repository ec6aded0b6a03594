import { range } from './collections/range.js';

/** If more than a third of its characters differ, a name is not taken for a misspelling of another one. */
const WRONG_PART = 1 / 3;

/** Returns `; did you mean "caption"?` if one of the names is similar to the given one, otherwise an empty text. */
export function didYouMean(given: string, names: Iterable<string>): string {
  let nearest: string | null = null;
  let least = Math.max(1, Math.floor(Math.min(given.length, 64) * WRONG_PART)) + 1;
  for (const name of names) {
    const distance = Math.abs(name.length - given.length) < least ? changes(plain(given), plain(name)) : least;
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest === null ? '' : `; did you mean "${nearest}"?`;
}

/** Makes `batch_size`, `batch-size` and `batchSize` equal. */
function plain(name: string): string {
  return name.replace(/[-_ ]/g, '').toLowerCase();
}

/**
 * Number of characters that must be inserted, deleted, replaced or exchanged with the next one (optimal string
 * alignment).
 */
function changes(a: string, b: string): number {
  let [before, last]: number[][] = [[], range(b.length + 1)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, last![j]! + 1, row[j - 1]! + 1);
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isExchanged) least = Math.min(least, before![j - 2]! + 1);
      row.push(least);
    }
    [before, last] = [last, row];
  }
  return last![b.length]!;
}
