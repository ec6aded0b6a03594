import { HashTable, indexArray, total } from '@shardtool/base';

/** Hashes of two words each: [low, high, low, high, ...]. */
export type Hashes = Uint32Array;

/**
 * The 64 bits are divided into six bands. Hashes that differ in at most {@link NEAR_BITS} bits are equal in at least two bands, so
 * sorting by these two bands brings them together.
 */
const BAND_BITS = [11, 11, 11, 11, 10, 10] as const;
const BAND_STARTS = BAND_BITS.map((_, band) => total(BAND_BITS.slice(0, band)));
export const NEAR_BITS = 4;

/** Number of bits in the key of two bands. If there are few hashes, fewer bits of the key are used. */
const MAX_KEY_BITS = 22;
/** Odd multiplier for keys, which lets all their bits influence the highest bits. */
const SPREAD = 0x9e3779b1;

/** Groups of numbers, built one pair at a time: a disjoint-set forest. */
export class Groups {
  readonly #parent: Uint32Array;

  constructor(count: number) {
    this.#parent = indexArray(count);
  }

  /** The smallest number of the group. */
  first(number: number): number {
    const parent = this.#parent;
    let at = number;
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]!]!;
      at = parent[at]!;
    }
    return at;
  }

  join(one: number, other: number): void {
    const [a, b] = [this.first(one), this.first(other)];
    if (a !== b) this.#parent[Math.max(a, b)] = Math.min(a, b);
  }
}

/**
 * Joins the owners of hashes that differ in at most {@link NEAR_BITS} bits. `ownerOf[i]` is the owner of hash i; an owner with several
 * hashes is compared by all of them. Memory: about 50 bytes per hash. Time is linear in the number of hashes, unless very many are
 * alike: then it is linear in the number of pairs.
 */
export function joinNear(hashes: Hashes, ownerOf: Uint32Array, groups: Groups): void {
  const { low, high, owners } = joinEqual(hashes, ownerOf, groups);
  const count = low.length;
  const sorted = { low: new Uint32Array(count), high: new Uint32Array(count), owners: new Uint32Array(count) };
  const starts = new Uint32Array(2 ** Math.min(MAX_KEY_BITS, Math.ceil(Math.log2(count + 1)) + 1) + 1);
  for (let one = 0; one < BAND_BITS.length; one++) {
    for (let other = one + 1; other < BAND_BITS.length; other++) {
      sortBy(one, other, { low, high, owners }, sorted, starts);
      joinWithin(sorted, starts, groups);
    }
  }
}

interface Sortable {
  readonly low: Uint32Array;
  readonly high: Uint32Array;
  readonly owners: Uint32Array;
}

/** Joins the owners of equal hashes, and returns each hash once. */
function joinEqual(hashes: Hashes, ownerOf: Uint32Array, groups: Groups): Sortable {
  const count = ownerOf.length;
  const spread = (i: number) => (Math.imul(hashes[2 * i]!, SPREAD) ^ Math.imul(hashes[2 * i + 1]!, 0x85ebca77)) >>> 0;
  const mixed = (i: number) => (spread(i) ^ (spread(i) >>> 15)) >>> 0;
  // Entries of the table start at 1.
  const table = new HashTable(Uint32Array, (entry) => mixed(entry - 1), count);
  const kept = new Uint32Array(count);
  let keptCount = 0;
  for (let i = 0; i < count; i++) {
    const same = table.place(
      i + 1,
      mixed(i),
      (entry) => hashes[2 * (entry - 1)] === hashes[2 * i] && hashes[2 * (entry - 1) + 1] === hashes[2 * i + 1],
    );
    if (same === 0) kept[keptCount++] = i;
    else groups.join(ownerOf[same - 1]!, ownerOf[i]!);
  }
  const low = new Uint32Array(keptCount);
  const high = new Uint32Array(keptCount);
  const owners = new Uint32Array(keptCount);
  for (let k = 0; k < keptCount; k++) {
    low[k] = hashes[2 * kept[k]!]!;
    high[k] = hashes[2 * kept[k]! + 1]!;
    owners[k] = ownerOf[kept[k]!]!;
  }
  return { low, high, owners };
}

/** Sorts by two bands (counting sort). Afterwards, hashes with the key k start at starts[k + 1]. */
function sortBy(one: number, other: number, from: Sortable, to: Sortable, starts: Uint32Array): void {
  const [startA, bitsA] = [BAND_STARTS[one]!, BAND_BITS[one]!];
  const [startB, bitsB] = [BAND_STARTS[other]!, BAND_BITS[other]!];
  const count = from.low.length;
  const shift = 32 - Math.log2(starts.length - 1);
  const keyOf = (i: number): number => {
    const low = from.low[i]!;
    const high = from.high[i]!;
    const key = (bandOf(low, high, startA, bitsA) << bitsB) | bandOf(low, high, startB, bitsB);
    return Math.imul(key, SPREAD) >>> shift;
  };
  starts.fill(0);
  for (let i = 0; i < count; i++) starts[keyOf(i) + 1]!++;
  for (let key = 1; key < starts.length; key++) starts[key]! += starts[key - 1]!;
  // starts[k + 1] is the end of key k. It decreases to the start of key k while positions are assigned.
  for (let i = count - 1; i >= 0; i--) {
    const at = --starts[keyOf(i) + 1]!;
    to.low[at] = from.low[i]!;
    to.high[at] = from.high[i]!;
    to.owners[at] = from.owners[i]!;
  }
}

/** Extracts `bits` bits from bit `start` on. */
function bandOf(low: number, high: number, start: number, bits: number): number {
  const mask = (1 << bits) - 1;
  if (start >= 32) return (high >>> (start - 32)) & mask;
  if (start + bits <= 32) return (low >>> start) & mask;
  return ((low >>> start) | (high << (32 - start))) & mask;
}

/** Compares all pairs of hashes with the same key. */
function joinWithin({ low, high, owners }: Sortable, starts: Uint32Array, groups: Groups): void {
  const count = low.length;
  for (let key = 1; key < starts.length; key++) {
    const begin = starts[key]!;
    const end = key + 1 < starts.length ? starts[key + 1]! : count;
    for (let a = begin; a < end - 1; a++) {
      const lowA = low[a]!;
      const highA = high[a]!;
      for (let b = a + 1; b < end; b++) {
        if (ones(lowA ^ low[b]!) + ones(highA ^ high[b]!) <= NEAR_BITS) groups.join(owners[a]!, owners[b]!);
      }
    }
  }
}

/** Number of bits that are 1 in a word. */
function ones(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
