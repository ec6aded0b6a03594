/**
 * Calls `work` for each item, at most `most` at a time, and returns the results in the order of the items. After a
 * failure no further item is started. When the items in progress have ended, the promise rejects with the error of the
 * first failed item in their order.
 */
export async function inLanes<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  let next = 0;
  let failed: { readonly index: number; readonly error: unknown } | null = null;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      try {
        results[index] = await work(items[index]!, index);
      } catch (error) {
        next = items.length;
        if (failed === null || index < failed.index) failed = { index, error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(items.length, most) }, lane));
  if (failed !== null) throw (failed as { readonly error: unknown }).error;
  return results;
}
