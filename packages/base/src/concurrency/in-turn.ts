/**
 * What `load` makes of each of `items`, in their order: up to `ahead` of them, the next one included, are begun before they are
 * asked for.
 */
export async function* inTurn<Item, Result>(
  items: readonly Item[],
  ahead: number,
  load: (item: Item, index: number) => Promise<Result>,
): AsyncGenerator<Result> {
  const begun: Promise<Result>[] = [];
  for (let next = 0; next < items.length || begun.length > 0; ) {
    for (; next < items.length && begun.length < ahead; next++) {
      const loading = load(items[next]!, next);
      // Whose turn never comes has nobody who could catch its error.
      loading.catch(() => {});
      begun.push(loading);
    }
    yield await begun.shift()!;
  }
}
