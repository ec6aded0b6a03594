import path from 'node:path';
import type { LoaderOptions } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { quantile } from '../bench/bench.js';
import type { Remedy, Tried } from './gains.js';
import { BUSY, processorTimes, shareOfOthers } from './other-programs.js';
import { type Measure, SampleLoop } from './sample-loop.js';

/** Turns in which the sample is read as it is and with each remedy. */
export const TURNS = 5;

export type Given = LoaderOptions & { readonly workers: number; readonly signal: AbortSignal };

/**
 * Rate of the sample as it is, the median of all turns, and what each remedy changed. In a turn, the sample is read for
 * `turn` seconds as it is, and for the same time with the remedy. `warmUp`: seconds at the start of each loop that are not
 * measured.
 */
export async function tryRemedies(
  folder: string,
  options: Given,
  remedies: readonly Remedy[],
  turn: number,
  warmUp: number,
): Promise<{ readonly rate: number; readonly remedies: readonly Tried[] }> {
  const open = async (name: string, { pack: packing, loader, workers = options.workers }: Partial<Remedy>) => {
    const output = path.join(folder, name);
    await pack(path.join(folder, 'images'), output, { ...packing, onBad: 'quarantine', signal: options.signal });
    return SampleLoop.open(output, { ...options, ...loader, workers }, warmUp);
  };
  await using present = await open('present', {});
  const turns = [await present.measure(turn, 0)];
  const tried: Tried[] = [];
  for (const [i, remedy] of remedies.entries()) {
    await using changed = await open(`remedy-${i}`, remedy);
    const pairs: Pair[] = [];
    const before = processorTimes();
    for (let number = 0; number < TURNS; number++) {
      pairs.push({
        present: await present.measure(turn, changed.busyUntil),
        changed: await changed.measure(turn, present.busyUntil),
      });
    }
    const isBusy = (shareOfOthers(before, processorTimes()) ?? 0) >= BUSY;
    turns.push(...pairs.map((pair) => pair.present));
    tried.push({
      remedy,
      workers: options.workers,
      ratios: ratiosOf(pairs, remedy, isBusy),
      size: changed.bytes / present.bytes,
    });
  }
  const rates = turns.map(({ rate }) => rate).sort((a, b) => a - b);
  return { rate: quantile(rates, 0.5), remedies: tried };
}

/** A turn. */
interface Pair {
  readonly present: Measure;
  readonly changed: Measure;
}

/**
 * How much faster each turn is with a remedy. If other programs take turns with the workers, rates differ by chance, but not
 * the processor time of an image. More workers do not change that.
 */
function ratiosOf(pairs: readonly Pair[], { workers }: Remedy, isBusy: boolean): number[] {
  const figure = isBusy && workers === undefined ? 'imagesPerCpuSecond' : 'rate';
  return pairs.map(({ present, changed }) => changed[figure] / present[figure]);
}
