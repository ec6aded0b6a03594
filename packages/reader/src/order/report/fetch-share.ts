import { shuffle } from '@shardtool/base';
import { UNITS_STREAM } from '../words.js';

/** Number of pieces that represent the dataset, and of simulated epochs, of which the second half counts. */
const PIECES = 400;
const LEAST_EPOCHS = 12;
const EPOCHS_A_MACHINE = 8;

/**
 * Returns what a machine fetches in a later epoch, as a share of what it reads in an epoch. A cache keeps `cached` of
 * the dataset (0 to 1) on each of `machines` machines, which share the pieces of each epoch in a new way. The result is
 * simulated piece by piece. The cache evicts the piece that will be needed furthest in the future, and does not store a
 * piece that is needed even later: L. A. Belady, A study of replacement algorithms for a virtual-storage computer
 * (1966).
 */
export function fetchShare(cached: number, machines: number): number {
  const room = Math.floor(Math.min(1, cached) * PIECES);
  if (room === 0) return 1;
  if (room === PIECES) return 0;
  const epochs = Math.max(LEAST_EPOCHS, EPOCHS_A_MACHINE * machines);
  const needs = needsOf(machines, epochs);
  const nextUses = nextUsesOf(needs);
  const kept = new Map<number, number>();
  const counted = needs.length / 2;
  let fetched = 0;
  for (const [i, piece] of needs.entries()) {
    const next = nextUses[i]!;
    const isKept = kept.has(piece);
    if (!isKept && i >= counted) fetched++;
    if (isKept || kept.size < room) {
      kept.set(piece, next);
      continue;
    }
    let last = -1;
    for (const [other, use] of kept) if (last < 0 || use > kept.get(last)!) last = other;
    if (kept.get(last)! <= next) continue;
    kept.delete(last);
    kept.set(piece, next);
  }
  return fetched / (needs.length - Math.ceil(counted));
}

/** Returns the pieces that one machine needs, in their order. */
function needsOf(machines: number, epochs: number): number[] {
  const order = new Uint32Array(PIECES);
  const needs: number[] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (let i = 0; i < PIECES; i++) order[i] = i;
    shuffle(order, PIECES, 1, epoch, UNITS_STREAM, 0);
    for (let place = 0; place < PIECES; place += machines) needs.push(order[place]!);
  }
  return needs;
}

function nextUsesOf(needs: readonly number[]): number[] {
  const next = new Map<number, number>();
  const uses = new Array<number>(needs.length);
  for (let i = needs.length - 1; i >= 0; i--) {
    uses[i] = next.get(needs[i]!) ?? Number.POSITIVE_INFINITY;
    next.set(needs[i]!, i);
  }
  return uses;
}
