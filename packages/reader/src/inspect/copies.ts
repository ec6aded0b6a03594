import { HashTable } from '@shardtool/base';
import { hasUsefulHash } from './findings.js';
import { Measures } from './measures.js';
import { Groups, joinNear } from './near-duplicates.js';

/** Groups of copies, by sample index. The samples of the second dataset follow those of the first. */
export interface Copies {
  readonly exact: Groups;
  readonly near: Groups;
  /** Number of samples of the first dataset. */
  readonly own: number;
  /** Number of samples of both datasets. */
  readonly total: number;
}

/** Finds copies. Exact copies have equal bytes; near copies differ in few bits of the perceptual hash. `against` are the measures of a second dataset. */
export function findCopies(measures: Measures, against: Measures | null): Copies {
  const own = measures.samples;
  const total = own + (against?.samples ?? 0);
  const all = against === null ? measures : new Measures(total);
  if (against !== null) {
    all.putShard(0, measures);
    all.putShard(own, against);
  }
  const exact = new Groups(total);
  const near = new Groups(total);
  const { crc32, bytes, hash, isMeasured } = all;
  const isSame = (a: number, b: number) =>
    crc32[a] === crc32[b] &&
    bytes[a] === bytes[b] &&
    hash[2 * a] === hash[2 * b] &&
    hash[2 * a + 1] === hash[2 * b + 1];
  const table = new HashTable(Uint32Array, (entry) => crc32[entry - 1]!, total);
  for (let row = 0; row < total; row++) {
    if (isMeasured[row] === 0) continue;
    const first = table.place(row + 1, crc32[row]!, (entry) => isSame(entry - 1, row));
    if (first === 0) continue;
    exact.join(first - 1, row);
    near.join(first - 1, row);
  }
  const owners: number[] = [];
  for (let row = 0; row < total; row++) if (exact.first(row) === row && hasUsefulHash(all, row)) owners.push(row);
  const hashes = new Uint32Array(4 * owners.length);
  const ownerOf = new Uint32Array(2 * owners.length);
  owners.forEach((row, i) => {
    hashes.set(all.hash.subarray(2 * row, 2 * row + 2), 4 * i);
    hashes.set(all.innerHash.subarray(2 * row, 2 * row + 2), 4 * i + 2);
    ownerOf.fill(row, 2 * i, 2 * i + 2);
  });
  joinNear(hashes, ownerOf, near);
  return { exact, near, own, total };
}

/** The members of each group of two or more samples, by the index of the first member. */
export function membersOf(groups: Groups, total: number): Map<number, number[]> {
  const members = new Map<number, number[]>();
  for (let row = 0; row < total; row++) {
    const first = groups.first(row);
    if (first === row) continue;
    const known = members.get(first);
    if (known === undefined) members.set(first, [first, row]);
    else known.push(row);
  }
  return members;
}

/** Whether a group has members in both datasets. `own` is the number of samples of the first. */
export function isLeak(rows: readonly number[], own: number): boolean {
  return rows.some((row) => row < own) && rows.some((row) => row >= own);
}
