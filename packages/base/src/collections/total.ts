/** The sum of numbers, added in their order. */
export function total(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum;
}

/** The sum of a number of each item, added in their order. */
export function totalOf<Item>(items: Iterable<Item>, numberOf: (item: Item) => number): number {
  let sum = 0;
  for (const item of items) sum += numberOf(item);
  return sum;
}
