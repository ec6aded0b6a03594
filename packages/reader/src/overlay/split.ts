import { CALL_OPTIONS, checkCallOptions, checkLocation, OptionError, type OptionTable } from '@shardtool/base';
import {
  isSet,
  type Overlay,
  type OverlayEntry,
  OverlayError,
  PackedChanges,
  rowBits,
  type SplitRule,
} from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import { type OverlayBase, type OverlayPlaceOptions, openBase, saveOn, shownShards } from './base.js';
import { overlayPath, readOverlays, SPLIT_OVERLAY } from './find.js';
import { checkOverlayName, moveOverlay } from './save.js';
import { splitHash, splitTest } from './split-rule.js';
import { countEntries, type OverlayCounts } from './summary.js';

export interface SplitOptions extends OverlayPlaceOptions {
  /**
   * Share of each split, by name. Shares are above 0 and at most 1 in total. The remaining samples are the split
   * `rest`.
   */
  readonly shares: ReadonlyMap<string, number>;
  /** Name of the split of all remaining samples. Default: `train`. */
  readonly rest?: string | undefined;
  /** True to apply the shares within each class, to the nearest sample. */
  readonly byClass?: boolean | undefined;
  /** A column whose equal values stay in one split, such as a patient or a video. */
  readonly group?: string | undefined;
  /** Name of the overlay that stores the splits. Default: `split`. */
  readonly name?: string | undefined;
  /** The overlay that the split builds on. */
  readonly parent?: string | undefined;
}

export interface SplitReport {
  readonly file: string;
  readonly hash: string;
  /** Number of samples of each split. */
  readonly splits: OverlayCounts['splits'];
  /** False if the same split existed and covers all shards. */
  readonly isNew: boolean;
}

const SPAN = 2 ** 32;

const OPTIONS = {
  shares: { kind: 'own', type: 'Map<string, number>', must: 'is a Map: new Map([["val", 0.1]])', help: 'Shares' },
  rest: { kind: 'text', help: 'Name of the remaining samples' },
  byClass: { kind: 'switch', help: 'Shares within each class' },
  group: { kind: 'text', help: 'A column whose equal values stay together' },
  name: { kind: 'text', help: 'Name of the overlay' },
  parent: { kind: 'text', help: 'The overlay below' },
  storage: CALL_OPTIONS.storage,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/**
 * Splits a dataset by the hash of its keys or groups. A sample gets the same split whatever the order of samples. If a
 * dataset has grown, running the same command again keeps the split of each sample, because the thresholds are stored.
 * The result is an overlay. Throws {@link OptionError} for invalid shares, a missing column, or `byClass` together with
 * `group`; OverlayError if another overlay has the name.
 */
export async function splitDataset(location: string, options: SplitOptions): Promise<SplitReport> {
  checkLocation('splitDataset', location);
  checkCallOptions('splitDataset', OPTIONS, options, { shares: (value) => value instanceof Map });
  if (options.shares === undefined)
    throw new OptionError({}, 'The shares of a split must be a Map, such as new Map([["val", 0.1]]).');
  const { name = SPLIT_OVERLAY, parent, group, storage, signal } = options;
  checkOverlayName(name);
  checkShares(options);
  const base = await openBase(location, parent, { storage, signal });
  const { chain, counts, below } = base;
  const note = noteOf(options);
  const file = overlayPath(location, name);
  const before = await readOverlays(location, name, storage).then((read) => read.at(-1)!, missing);
  if (before !== null && (before.note !== note || before.parent?.hash !== chain.at(-1)?.hash)) {
    throw new OverlayError(
      { path: file },
      `The overlay ${file} already exists, and it is not this split: choose another name.`,
    );
  }
  if (before !== null && coversAll(before, counts)) {
    const { splits } = countEntries(before.entries);
    return { file, hash: before.hash, splits, isNew: false };
  }

  const draws = await drawAll(base, group);
  const rules = before === null ? rulesOf(options, draws, below.classes) : countEntries(before.entries).splits;
  const entries = splitEntries(rules, draws, below.classes, before === null ? new Map() : knownRows(before));
  signal?.throwIfAborted();
  if (before !== null) await putAside(file, before, storage);
  // A split that was put aside is always replaced.
  const saved = await saveOn({ ...base, signal: undefined }, { name, note }, [entries]);
  const { splits } = countEntries(entries);
  return { ...saved, splits, isNew: true };
}

/** The rows of splits by their names and by shard, as bits. */
type KnownRows = ReadonlyMap<string, ReadonlyMap<number, Uint8Array>>;

/** The rows that an overlay has. A sample keeps its split, also if its class has changed since it was drawn. */
function knownRows({ entries }: Overlay): KnownRows {
  const known = new Map<string, Map<number, Uint8Array>>();
  for (const entry of entries) {
    if (entry instanceof PackedChanges || !('split' in entry)) continue;
    if ('rule' in entry) known.set(entry.split, new Map());
    else known.get(entry.split)?.set(entry.shard, Buffer.from(entry.rows, 'base64'));
  }
  return known;
}

/** Whether each split of an overlay has rows for every shard with samples. */
function coversAll(overlay: Overlay, counts: readonly number[]): boolean {
  return [...knownRows(overlay).values()].every((rows) =>
    counts.every((samples, shard) => samples === 0 || rows.has(shard)),
  );
}

/** Data that decides the split of each sample of one shard, 9 bytes per sample. */
interface ShardDraws {
  readonly hash: Uint32Array;
  readonly cls: Int32Array;
  /** 1 for a sample that an overlay below excludes. */
  readonly isGone: Uint8Array;
}

async function drawAll(base: OverlayBase, group: string | undefined): Promise<ShardDraws[]> {
  const draws: ShardDraws[] = [];
  let isKnown = false;
  const parts = group === undefined ? (['key', 'cls'] as const) : (['key', 'cls', 'columns'] as const);
  for await (const { index, gone: isGone } of shownShards(base, parts, new Set(group === undefined ? [] : [group]))) {
    const { key, cls, columns, samples } = index;
    const values = group === undefined ? undefined : columns!.get(group);
    isKnown ||= group === undefined || values !== undefined;
    const hash = new Uint32Array(samples);
    for (let row = 0; row < samples; row++) {
      hash[row] = splitHash(key![row]!, values?.[row]);
    }
    draws.push({ hash, cls: cls!, isGone });
  }
  if (isKnown || base.counts.length === 0) return draws;
  throw new OptionError({}, `No sample has a column "${group}": "shardtool ls --samples --json" shows all columns.`);
}

interface NamedRule {
  readonly name: string;
  readonly rule: SplitRule;
}

/**
 * Returns the thresholds of every split: fractions of the range of hashes or, by class, of the sorted hashes of its
 * samples.
 */
function rulesOf(
  { shares, rest = 'train', byClass = false, group }: SplitOptions,
  draws: readonly ShardDraws[],
  classes: readonly string[],
): NamedRule[] {
  const names = [...shares.keys(), rest];
  const edges = [0];
  for (const share of shares.values()) edges.push(edges.at(-1)! + share);
  edges.push(1);
  const plain = edges.map((edge) => Math.round(edge * SPAN));
  const byName = new Map<string | null, number[]>([[null, plain]]);
  if (byClass) {
    for (const [cls, hashes] of hashesByClass(draws)) {
      // A threshold is the hash of the first sample after it, so that the share of samples is exact.
      const borders = edges.map((edge) => hashes[Math.round(edge * hashes.length)] ?? SPAN);
      byName.set(classes[cls] ?? String(cls), [0, ...borders.slice(1, -1), SPAN]);
    }
  }
  return names.map((name, i) => ({
    name,
    rule: {
      group: group ?? null,
      byClass,
      borders: Array.from(byName, ([cls, borders]) => [cls, borders[i]!, borders[i + 1]!] as const),
    },
  }));
}

/** Returns the hashes of each class's samples, rising. */
function hashesByClass(draws: readonly ShardDraws[]): Map<number, Uint32Array> {
  const counts = new Map<number, number>();
  for (const { cls, isGone } of draws) {
    for (let row = 0; row < cls.length; row++) {
      if (isGone[row] === 0) counts.set(cls[row]!, (counts.get(cls[row]!) ?? 0) + 1);
    }
  }
  const hashes = new Map(Array.from(counts, ([cls, count]) => [cls, new Uint32Array(count)]));
  const filled = new Map<number, number>();
  for (const { hash, cls, isGone } of draws) {
    for (let row = 0; row < hash.length; row++) {
      if (isGone[row] === 1) continue;
      const at = filled.get(cls[row]!) ?? 0;
      hashes.get(cls[row]!)![at] = hash[row]!;
      filled.set(cls[row]!, at + 1);
    }
  }
  for (const list of hashes.values()) list.sort();
  return hashes;
}

function splitEntries(
  rules: readonly NamedRule[],
  draws: readonly ShardDraws[],
  classes: readonly string[],
  known: KnownRows,
): OverlayEntry[] {
  return rules.flatMap(({ name, rule }): OverlayEntry[] => {
    const isIn = splitTest(rule, classes);
    let samples = 0;
    const classSamples: number[] = classes.map(() => 0);
    const rows = draws.map(({ hash, cls, isGone }, shard): OverlayEntry => {
      const bits = known.get(name)?.get(shard);
      const isChosen = (row: number) => {
        if (isGone[row] === 1 || !(bits === undefined ? isIn(hash[row]!, cls[row]!) : isSet(bits, row))) return false;
        samples++;
        if (cls[row]! >= 0) classSamples[cls[row]!] = (classSamples[cls[row]!] ?? 0) + 1;
        return true;
      };
      return { split: name, shard, rows: rowBits(hash.length, isChosen) };
    });
    return [{ split: name, samples, classSamples: Array.from(classSamples, (count) => count ?? 0), rule }, ...rows];
  });
}

function checkShares({ shares, rest = 'train', byClass, group }: SplitOptions): void {
  let sum = 0;
  for (const [name, share] of shares) {
    if (!(share > 0 && share < 1)) {
      throw new OptionError({}, `The share of the split "${name}" is ${share}: it must be between 0 and 1.`);
    }
    sum += share;
  }
  if (shares.size === 0) throw new OptionError({}, 'No split is given: set a share, such as 0.1 for val.');
  if (sum >= 1 || shares.has(rest)) {
    throw new OptionError({}, `The shares leave nothing for the split "${rest}": their sum must be below 1.`);
  }
  if (byClass === true && group !== undefined) {
    throw new OptionError(
      {},
      'A split is either by class or by group: remove one of them. Because groups stay whole, the shares cannot hold within each class.',
    );
  }
}

/** Describes the request as text. Equal requests have equal texts. */
function noteOf({ shares, rest = 'train', byClass = false, group }: SplitOptions): string {
  const parts = Array.from(shares, ([name, share]) => `${name} ${share}`);
  return `split: ${parts.join(', ')}, rest ${rest}${byClass ? ', by class' : ''}${group === undefined ? '' : `, group ${group}`}`;
}

/** A split that did not cover all shards is moved to another folder, because states of loaders refer to its hash. */
async function putAside(file: string, { name, hash }: Overlay, storage: StorageOptions | undefined): Promise<void> {
  await moveOverlay(file, `replaced/${name}.${hash.slice(0, 16)}.jsonl`, storage);
}

function missing(error: unknown): null {
  if (error instanceof OverlayError && error.cause !== undefined) return null;
  throw error;
}
