/** Returns `count` consecutive whole numbers, starting at `first`. */
export function consecutive(first: number, count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = first + i;
  return numbers;
}
