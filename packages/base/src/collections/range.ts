/** The whole numbers from 0 to `count - 1`. */
export function range(count: number): number[] {
  // This takes a tenth of the time of Array.from with a function.
  const numbers: number[] = [];
  for (let i = 0; i < count; i++) numbers.push(i);
  return numbers;
}

/** The whole numbers from 0 to `count - 1`, in 4 bytes each. */
export function indexArray(count: number): Uint32Array<ArrayBuffer> {
  const indices = new Uint32Array(count);
  for (let i = 0; i < count; i++) indices[i] = i;
  return indices;
}
