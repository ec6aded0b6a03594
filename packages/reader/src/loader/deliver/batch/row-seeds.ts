import { FIRST_NUMBER, SampleRandom } from '../../../transform/random.js';
import type { PendingBatch } from '../pending-batch.js';

/** Two random words per row, uint32 [n, 2], which depend only on the seed, the pass and the sample of the row. */
export function rowSeeds(
  { rows, blocks, items, numbers, sources }: PendingBatch,
  seeds: readonly number[],
): Uint32Array {
  const randoms = seeds.map((seed) => new SampleRandom(seed));
  const words = new Uint32Array(2 * rows);
  for (let row = 0; row < rows; row++) {
    const { pass, occurrence } = blocks[row]!;
    const random = randoms[sources[row]!]!;
    random.start(pass, numbers[row]!, occurrence[items[row]!]!, FIRST_NUMBER.rowSeeds);
    for (let word = 0; word < 2; word++) words[2 * row + word] = random.next() * 2 ** 32;
  }
  return words;
}
