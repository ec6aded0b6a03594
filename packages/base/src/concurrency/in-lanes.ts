/**
 * What `work` makes of each of `items`, begun in their order, `most` at a time. If one fails, no other is begun. The promise
 * rejects when those under way have ended, always with the error of the first item that fails.
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
