/** `count` whole numbers from `first` on. */
export function consecutive(first: number, count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = first + i;
  return numbers;
}
