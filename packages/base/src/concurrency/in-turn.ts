/**
 * Yields the result of `load` for each item, in the order of the items. Up to `ahead` items are being loaded at a time,
 * the next one included.
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
      // The caller may stop before this item, so its error may never be awaited: avoid an unhandled rejection.
      loading.catch(() => {});
      begun.push(loading);
    }
    yield await begun.shift()!;
  }
}
