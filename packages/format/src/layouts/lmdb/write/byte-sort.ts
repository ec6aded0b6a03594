/** For fewer strings, insertion sort is faster. */
const FEW = 12;

/**
 * Sorts the numbers of distinct byte strings by their bytes, a prefix before longer strings. String i is `bytes` from
 * `starts[i]` to `starts[i + 1]`. In place; multikey quicksort (Bentley and Sedgewick, "Fast Algorithms for Sorting and
 * Searching Strings", 1997), which looks at each byte about once.
 */
export function sortByBytes(order: Uint32Array, bytes: Uint8Array, starts: Float64Array): Uint32Array {
  /** Byte `depth` of string `index`, from 1 to 256; 0 after its end. */
  const byteAt = (index: number, depth: number): number => {
    const at = starts[index]! + depth;
    return at < starts[index + 1]! ? bytes[at]! + 1 : 0;
  };
  const isLess = (a: number, b: number, depth: number): boolean => {
    for (; ; depth++) {
      const difference = byteAt(a, depth) - byteAt(b, depth);
      if (difference !== 0) return difference < 0;
      if (byteAt(a, depth) === 0) return false;
    }
  };
  const insert = (low: number, high: number, depth: number): void => {
    for (let i = low + 1; i < high; i++) {
      const index = order[i]!;
      let at = i;
      for (; at > low && isLess(index, order[at - 1]!, depth); at--) order[at] = order[at - 1]!;
      order[at] = index;
    }
  };
  /** Ranges that still have to be sorted, and how many bytes their strings have in common. */
  const ranges = [{ low: 0, high: order.length, depth: 0 }];
  for (let range = ranges.pop(); range !== undefined; range = ranges.pop()) {
    const { low, high, depth } = range;
    if (high - low <= FEW) {
      insert(low, high, depth);
      continue;
    }
    const pivot = median(
      byteAt(order[low]!, depth),
      byteAt(order[(low + high) >>> 1]!, depth),
      byteAt(order[high - 1]!, depth),
    );
    let less = low;
    let greater = high;
    for (let i = low; i < greater; ) {
      const index = order[i]!;
      const byte = byteAt(index, depth);
      if (byte > pivot) {
        order[i] = order[--greater]!;
        order[greater] = index;
      } else {
        if (byte < pivot) {
          order[i] = order[less]!;
          order[less++] = index;
        }
        i++;
      }
    }
    ranges.push({ low, high: less, depth }, { low: greater, high, depth });
    if (pivot > 0) ranges.push({ low: less, high: greater, depth: depth + 1 });
  }
  return order;
}

function median(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
