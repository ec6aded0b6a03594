import { createHash } from 'node:crypto';
import { inTurn, joined, OptionError, total } from '@shardtool/base';
import type { ShardIndex } from '@shardtool/format';
import { firstNumbers } from '../order/units.js';
import type { Randomness } from '../order/words.js';
import { classNumber } from './classes.js';
import { drawWeighted, weightedTimes } from './draw-weighted.js';
import { refuseMissingKeys } from './missing-keys.js';
import { drawTimes, type Weights, weigher } from './weights.js';
import { compileWhere } from './where.js';

/** Selects samples: those that match all options that are set. The shards do not change. */
export interface SelectionRequest {
  /** Class names or class numbers. */
  readonly classes?: readonly (string | number)[] | undefined;
  readonly keys?: Iterable<string> | undefined;
  /** An expression over the columns of the index: `width >= 256 and class in ("cat", "dog")`. */
  readonly where?: string | undefined;
  readonly weights?: Weights | undefined;
}

/** The samples to select from. */
export interface SelectableDataset {
  /** Samples of each shard. */
  readonly counts: ArrayLike<number>;
  readonly classNames: readonly string[];
  indexOf(shard: number): Promise<ShardIndex>;
}

/** The samples of one pass, shard by shard in the order on disk. */
export interface Selection {
  /** Number of selected samples of each shard. Repeated samples count each time. */
  readonly counts: ArrayLike<number>;
  /** Selected rows of the shard's index, ascending. A repeated row is listed each time. Null: all rows. */
  rows(shard: number): Uint32Array | null;
}

/** A checked request. It selects the samples of each pass. */
export interface Subset {
  /** '' if everything is selected; otherwise a hash of the selection and the weights. Part of a loader's state. */
  readonly identity: string;
  /** Every sample that can occur in any pass, at least once. */
  readonly all: Selection;
  /** Sum of the weights of its samples; without weights, the number of samples. */
  readonly weight: number;
  /** The selection of pass `epoch`. The last result is cached. */
  draw(randomness: Randomness): Selection;
}

/** The run that samples are selected for. */
export interface SelectedRun {
  /** Number of samples of an epoch, which weights divide. Default: the number of samples with a weight above 0. */
  readonly epochSamples?: number | null | undefined;
  /** {@link Subset.identity} in the state of a run that resumes. */
  readonly identity?: string | undefined;
}

/** Number of indexes that are read at once. */
const READ_AT_ONCE = 8;

/** The selected rows of a shard (null: all rows), and their weights (null: each row occurs once). */
interface ShardSubset {
  readonly rows: Uint32Array | null;
  readonly weights: Float64Array | null;
}

/** The datasets of a mixture, in their order, each with its own selection. */
export interface SelectedPart {
  readonly request: SelectionRequest;
  readonly dataset: SelectableDataset;
}

/**
 * Finds the samples that a request selects. Without a request, no index is read. Throws {@link OptionError} for an
 * unknown class, a key that is not in the dataset, an invalid expression or weight, and a selection without samples.
 */
export async function selectSamples(
  request: SelectionRequest,
  dataset: SelectableDataset,
  run: SelectedRun = {},
): Promise<Subset> {
  const [subset] = await selectOfParts(request, dataset, [{ request: {}, dataset }], run);
  return subset!;
}

/**
 * Like {@link selectSamples} for several datasets: `dataset` is all of them in sequence, as `request` sees them. A sample is
 * selected if it matches both the request of its part and `request`. A part may have no selected sample, but all parts
 * together must have one.
 */
export async function selectOfParts(
  request: SelectionRequest,
  dataset: SelectableDataset,
  parts: readonly SelectedPart[],
  run: SelectedRun = {},
): Promise<Subset[]> {
  const chosen = isEverything(request) ? null : await selectShards(request, dataset);
  const first = firstNumbers(parts.map((part) => part.dataset.counts.length));
  const subsets = await Promise.all(
    parts.map(async (part, i) => {
      const own = isEverything(part.request) ? null : await selectShards(part.request, part.dataset);
      if (own !== null) checkSome(own, part.dataset.counts);
      const both = within(own, chosen?.slice(first[i]!, first[i + 1]!) ?? null);
      return { subsets: both, counts: part.dataset.counts };
    }),
  );
  if (chosen !== null) {
    checkSome(
      subsets.flatMap((part) => part.subsets!),
      joined(
        subsets.map(({ counts }) => counts),
        Float64Array,
      ),
    );
  }
  return subsets.map(({ subsets: both, counts }) => subsetOf(both, counts, run));
}

function isEverything(request: SelectionRequest): boolean {
  return Object.values(request).every((part) => part === undefined);
}

function checkSome(subsets: readonly ShardSubset[], counts: ArrayLike<number>): void {
  if (subsets.some((subset, k) => mostSamples(subset, counts[k]!) > 0)) return;
  throw new OptionError({}, 'No sample is selected: widen classes, keys, where or weights.');
}

/** The rows that are in both; weights are those of the second. Null: all rows. */
function within(
  own: readonly ShardSubset[] | null,
  chosen: readonly ShardSubset[] | null,
): readonly ShardSubset[] | null {
  if (own === null || chosen === null) return own ?? chosen;
  return chosen.map(({ rows, weights }, k) => {
    const most = own[k]!.rows;
    if (most === null) return { rows, weights };
    const wanted = new Set(most);
    const isWanted = (row: number) => wanted.has(row);
    if (rows === null) return { rows: most, weights: weights && Float64Array.from(most, (row) => weights[row]!) };
    return { rows: rows.filter(isWanted), weights: weights?.filter((_, i) => isWanted(rows[i]!)) ?? null };
  });
}

function subsetOf(subsets: readonly ShardSubset[] | null, counts: ArrayLike<number>, run: SelectedRun): Subset {
  const samples = (rows: Selection) => Array.from(rows.counts).reduce((sum, count) => sum + count, 0);
  if (subsets === null) {
    const all: Selection = { counts, rows: () => null };
    return { identity: '', all, weight: samples(all), draw: () => all };
  }
  const weight = subsets.reduce((sum, subset, k) => sum + mostSamples(subset, counts[k]!), 0);
  if (weight === 0 || subsets.every(({ weights }) => weights === null)) {
    const all = selectionOf(
      subsets.map(({ rows, weights }) => (weights === null ? rows : new Uint32Array(0))),
      counts,
    );
    return { identity: identityOf(subsets), all, weight, draw: () => all };
  }
  const earlier = identityOf(subsets);
  return run.identity === earlier
    ? weightedSubset(subsets, counts, earlier, timesOfEarlier(subsets, counts), weight)
    : weightedSubset(
        subsets,
        counts,
        identityOf(subsets, 'shared;'),
        timesOf(subsets, run.epochSamples ?? undefined),
        weight,
      );
}

/** Number of times that each sample occurs in a pass, by shard. Null for a shard without selected samples. */
interface Times {
  readonly varies: boolean;
  draw(randomness: Randomness): readonly Uint32Array[];
}

function weightedSubset(
  subsets: readonly ShardSubset[],
  counts: ArrayLike<number>,
  identity: string,
  times: Times,
  weight: number,
): Subset {
  // The weights themselves are no longer needed: they take 8 bytes per sample.
  const selected = subsets.map(({ rows, weights }) => ({ rows, isWeighed: weights !== null }));
  const draw = (randomness: Randomness) => {
    const drawn = times.draw(randomness);
    return selectionOf(
      selected.map((shard, k) => repeatedRows(shard, drawn[k]!)),
      counts,
    );
  };
  const always = times.varies ? undefined : draw({ seed: 0, epoch: 0 });
  let last: { readonly randomness: Randomness; readonly selection: Selection } | undefined;
  return {
    identity,
    weight,
    all: always ?? selectionOf(subsets.map(possibleRows), counts),
    draw({ seed, epoch }) {
      if (always !== undefined) return always;
      if (last?.randomness.seed !== seed || last.randomness.epoch !== epoch) {
        last = { randomness: { seed, epoch }, selection: draw({ seed, epoch }) };
      }
      return last.selection;
    },
  };
}

/** Weights divide the samples of a pass. By default a pass has as many samples as can be selected. */
function timesOf(subsets: readonly ShardSubset[], epochSamples: number | undefined): Times {
  const parts = subsets.map(({ weights }) => weights ?? new Float64Array());
  const first = firstNumbers(parts.map(({ length }) => length));
  const line = joined(parts, Float64Array);
  const times = weightedTimes(line, epochSamples ?? line.reduce((most, weight) => most + (weight > 0 ? 1 : 0), 0));
  return {
    varies: times.drawn.length > 0,
    draw(randomness) {
      const drawn = drawWeighted(times, randomness);
      return Array.from({ length: first.length - 1 }, (_, k) => drawn.subarray(first[k]!, first[k + 1]!));
    },
  };
}

/**
 * In runs that an earlier version started, a weight is the number of occurrences of a sample in a pass, independent of
 * other weights.
 */
function timesOfEarlier(subsets: readonly ShardSubset[], counts: ArrayLike<number>): Times {
  const first = firstNumbers(counts);
  return {
    varies: subsets.some(({ weights }) => weights?.some((weight) => !Number.isInteger(weight))),
    draw: (randomness) =>
      subsets.map(({ rows, weights }, k) =>
        drawTimes(weights ?? new Float64Array(), (i) => first[k]! + (rows === null ? i : rows[i]!), randomness),
      ),
  };
}

async function selectShards(request: SelectionRequest, dataset: SelectableDataset): Promise<ShardSubset[]> {
  const { counts, classNames } = dataset;
  const classes = request.classes && new Set(request.classes.map((wanted) => classNumber(wanted, classNames)));
  const keys = request.keys && new Set(request.keys);
  const missing = new Set(keys);
  const where = request.where === undefined ? undefined : compileWhere(request.where, classNames);
  const first = firstNumbers(counts);
  const weigh = request.weights && weigher(request.weights, classNames, first[counts.length]!);

  const selectShard = (index: ShardIndex, shard: number): ShardSubset => {
    const isWanted = where?.(index);
    const rows: number[] = [];
    for (let row = 0; row < index.samples; row++) {
      if (keys !== undefined) {
        if (!keys.has(index.key[row]!)) continue;
        missing.delete(index.key[row]!);
      }
      if (classes !== undefined && !classes.has(index.cls[row]!)) continue;
      if (isWanted === undefined || isWanted(row)) rows.push(row);
    }
    const weights =
      weigh &&
      Float64Array.from(rows, (row) =>
        weigh({
          number: first[shard]! + row,
          // Decoding the keys takes time and memory, and few weights depend on them.
          get key() {
            return index.key[row]!;
          },
          cls: index.cls[row]!,
        }),
      );
    return { rows: rows.length === index.samples ? null : Uint32Array.from(rows), weights: weights ?? null };
  };

  const subsets: ShardSubset[] = [];
  const indexes = inTurn(Array.from(counts), READ_AT_ONCE, async (samples, shard) =>
    samples === 0 ? null : dataset.indexOf(shard),
  );
  for await (const index of indexes) {
    subsets.push(index === null ? { rows: null, weights: null } : selectShard(index, subsets.length));
  }
  refuseMissingKeys('keys', missing, 'the dataset');
  return subsets;
}

function mostSamples({ rows, weights }: ShardSubset, count: number): number {
  if (weights !== null) return total(weights);
  return rows === null ? count : rows.length;
}

/** The selected rows. A row is repeated as often as it occurs. */
function repeatedRows(
  { rows, isWeighed }: { readonly rows: Uint32Array | null; readonly isWeighed: boolean },
  times: Uint32Array,
): Uint32Array | null {
  if (!isWeighed) return rows;
  const drawn = new Uint32Array(times.reduce((sum, count) => sum + count, 0));
  for (let i = 0, at = 0; i < times.length; i++) {
    drawn.fill(rows === null ? i : rows[i]!, at, at + times[i]!);
    at += times[i]!;
  }
  return drawn;
}

/** The rows that may be drawn in a pass. */
function possibleRows({ rows, weights }: ShardSubset): Uint32Array | null {
  if (weights === null || weights.every((weight) => weight > 0)) return rows;
  const all = rows ?? Uint32Array.from(weights, (_, row) => row);
  return all.filter((_, i) => weights[i]! > 0);
}

function selectionOf(rows: readonly (Uint32Array | null)[], counts: ArrayLike<number>): Selection {
  return {
    counts: Float64Array.from(rows, (selected, k) => (selected === null ? counts[k]! : selected.length)),
    rows: (shard) => rows[shard]!,
  };
}

function identityOf(subsets: readonly ShardSubset[], kind = ''): string {
  const hash = createHash('sha256').update(kind);
  for (const { rows, weights } of subsets) {
    hash.update(`${rows?.length ?? 'all'},${weights?.length ?? 'once'};`);
    if (rows !== null) hash.update(rows);
    if (weights !== null) hash.update(weights);
  }
  return hash.digest('hex').slice(0, 16);
}
