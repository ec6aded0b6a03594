/**
 * What `work` makes of each of `items`, begun in their order, `most` at a time. Where one fails no other is begun, and the promise
 * rejects when those under way have ended: what they work on is nobody else's until then.
 */
export async function inLanes<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      try {
        results[index] = await work(items[index]!, index);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(items.length, most) }, lane));
  for (const result of lanes) if (result.status === 'rejected') throw result.reason;
  return results;
}
