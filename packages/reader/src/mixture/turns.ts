import { total } from '@shardtool/base';
/**
 * Number of turns of each source among the first `n` turns. Turns are ordered like seats in the Sainte-Laguë method:
 * turn j of a source with c turns has the position (2j + 1) / c. Of equal positions, the source with the lower number
 * comes first. So among the first n turns, each source has its share within about one turn, and the result for any `n`
 * can be computed directly.
 */
export function turnsBefore(turns: readonly number[], n: number): number[] {
  const all = total(turns);
  const taken = turns.map((c) => (all === 0 ? 0 : nearestShare(n, c, all)));
  let sum = taken.reduce((a, b) => a + b, 0);
  for (; sum > n; sum--) {
    let latest = -1;
    for (let d = 0; d < turns.length; d++) {
      if (taken[d]! > 0 && (latest < 0 || stands(turns, latest, taken[latest]! - 1, d, taken[d]! - 1))) latest = d;
    }
    taken[latest]!--;
  }
  for (; sum < n; sum++) {
    let next = -1;
    for (let d = 0; d < turns.length; d++) {
      if (turns[d]! > 0 && (next < 0 || stands(turns, d, taken[d]!, next, taken[next]!))) next = d;
    }
    taken[next]!++;
  }
  return taken;
}

/** Whether turn j of source d comes before turn i of source e. */
function stands(turns: readonly number[], d: number, j: number, e: number, i: number): boolean {
  const x = product(2 * j + 1, turns[e]!);
  const y = product(2 * i + 1, turns[d]!);
  return x === y ? d < e : x < y;
}

/** Exact comparison: big integers are used if a product exceeds 2^53. Numbers and big integers compare by value. */
function product(a: number, b: number): number | bigint {
  const rounded = a * b;
  return rounded <= Number.MAX_SAFE_INTEGER ? rounded : BigInt(a) * BigInt(b);
}

/** Computes n * c / all, rounded to the nearest whole number. */
function nearestShare(n: number, c: number, all: number): number {
  const rounded = 2 * n * c + all;
  if (rounded <= Number.MAX_SAFE_INTEGER) return Math.floor(rounded / (2 * all));
  return Number((2n * BigInt(n) * BigInt(c) + BigInt(all)) / (2n * BigInt(all)));
}
