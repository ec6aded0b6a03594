import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  CALL_OPTIONS,
  checkCallOptions,
  checkLocation,
  didYouMean,
  OptionError,
  type OptionTable,
  totalOf,
} from '@shardtool/base';
import { INDEX_PARTS, type OverlayClass, type OverlayEntry, type ShardIndex, sortedByValue } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import type { IndexPieces } from '../dataset/inspection-columns.js';
import { refuseMissingKeys } from '../selection/missing-keys.js';
import { compileWhere, namesInWhere } from '../selection/where.js';
import { WhereError } from '../selection/where-tokens.js';
import { type OverlayBase, type OverlayPlaceOptions, openBase, type ShownShard, saveOn, shownShards } from './base.js';
import { HeldLabels, type LabelChanges, type LabelPage, type LabelSource } from './label-source.js';
import type { Layers } from './layers.js';
import { ChangeCounter, packedEntries } from './pack-changes.js';
import { checkOverlayName } from './save.js';
import { type LabelFile, SpooledLabels } from './spool/spooled-labels.js';
import type { OverlayCounts } from './summary.js';

export type { LabelChanges } from './label-source.js';
export type { LabelFile } from './spool/spooled-labels.js';

/** The changes of an overlay. */
export interface OverlayChanges {
  readonly excludeKeys?: Iterable<string> | undefined;
  /** Samples that match this expression are excluded. */
  readonly excludeWhere?: string | undefined;
  /** Labels in memory, or a file of any size. */
  readonly labels?: LabelChanges | LabelFile | undefined;
  /** New names of classes. Classes that get the same name, or the name of another class, are merged. */
  readonly rename?: ReadonlyMap<string, string> | undefined;
  /** All classes in their new order. Default: the current order, with new classes at the end. */
  readonly classes?: readonly string[] | undefined;
}

export interface AddOverlayOptions extends OverlayChanges, OverlayPlaceOptions {
  readonly name: string;
  /** The overlay that the new one builds on. */
  readonly parent?: string | undefined;
  /** Location to write to. Default: the dataset's folder of overlays. */
  readonly file?: string | undefined;
  /** A description of the change, for people who read the log. */
  readonly note?: string | undefined;
}

const OPTIONS = {
  name: { kind: 'text', help: 'Name of the overlay' },
  parent: { kind: 'text', help: 'The overlay below' },
  file: { kind: 'path', help: 'Where it is written' },
  note: { kind: 'text', help: 'A description' },
  excludeKeys: { kind: 'own', type: 'Iterable<string>', must: 'is a list of keys', help: 'Samples that are excluded' },
  excludeWhere: { kind: 'text', help: 'Samples that are excluded' },
  labels: { kind: 'own', type: 'LabelChanges', must: 'is { by, id, cls, columns }', help: 'Classes and columns' },
  rename: { kind: 'own', type: 'Map<string, string>', must: 'is a Map of old and new names', help: 'New names' },
  classes: { kind: 'own', type: 'string[]', must: 'is a list of names of classes', help: 'All classes in order' },
  storage: CALL_OPTIONS.storage,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/** Number of new classes for which similar names are searched. Searching for 20,000 new classes would take minutes. */
const HINTED = 10;

export interface AddOverlayReport extends Pick<OverlayCounts, 'excluded' | 'relabelled' | 'set'> {
  readonly file: string;
  readonly hash: string;
  readonly classes: number;
  /** Classes that only the labels contain, sorted. The first few have the hint of {@link didYouMean}, the others ''. */
  readonly newClasses: readonly { readonly name: string; readonly hint: string }[];
}

/**
 * Creates an overlay, a small file with changes next to shards that stay as they are. Throws {@link OptionError} for
 * keys, paths and classes that the dataset (with its parent overlay) does not have, and {@link WhereError} for
 * `excludeWhere`.
 */
export async function addOverlay(location: string, options: AddOverlayOptions): Promise<AddOverlayReport> {
  checkLocation('addOverlay', location);
  checkCallOptions('addOverlay', OPTIONS, options, {
    excludeKeys: (value) => typeof value === 'object' && value !== null && Symbol.iterator in value,
    labels: (value) => typeof value === 'object' && value !== null,
    rename: (value) => value instanceof Map,
    classes: Array.isArray,
  });
  try {
    return await add(location, options);
  } catch (error) {
    throw error instanceof WhereError ? error.ofOption('excludeWhere') : error;
  }
}

async function add(location: string, given: AddOverlayOptions): Promise<AddOverlayReport> {
  const options = { ...given, excludeKeys: given.excludeKeys && new Set(given.excludeKeys) };
  const { name, parent, note = '', file, storage, signal } = options;
  checkOverlayName(name);
  const base = await openBase(location, parent, { storage, signal });
  const labels = await labelSourceOf(base, options);
  try {
    return await addTo(base, { ...options, labels }, { name, note, file, isPacked: isPacked(base, options) });
  } finally {
    if (labels instanceof SpooledLabels) labels.close();
  }
}

/** The changes with labels that can be searched. */
type SearchedChanges = Omit<OverlayChanges, 'labels'> & { readonly labels: LabelSource | undefined };

/** Number of changes above which an overlay has a line per shard instead of a line per sample. */
const MOST_LINES = 10_000;

function isPacked(
  { counts }: OverlayBase,
  { labels, excludeKeys, excludeWhere }: OverlayChanges & { readonly excludeKeys: ReadonlySet<string> | undefined },
): boolean {
  const rows = labels === undefined ? 0 : 'rows' in labels ? Number.POSITIVE_INFINITY : labels.id.length;
  return (
    rows + (excludeKeys?.size ?? 0) + (excludeWhere === undefined ? 0 : totalOf(counts, (count) => count)) > MOST_LINES
  );
}

async function labelSourceOf(base: OverlayBase, { labels, file }: AddOverlayOptions): Promise<LabelSource | undefined> {
  if (labels === undefined) return undefined;
  if (!('rows' in labels)) return new HeldLabels(labels);
  const shards = {
    counts: base.counts,
    async *idsOfShards(by: 'key' | 'path') {
      const part = by === 'path' ? 'source' : 'key';
      for await (const { index } of shownShards(base, [part])) yield index[part]!;
    },
  };
  const at = file ?? base.location;
  const folder = isRemote(at)
    ? tmpdir()
    : file === undefined
      ? (base.stored.folder ?? path.dirname(at))
      : path.dirname(at);
  return SpooledLabels.read(labels, shards, folder);
}

async function addTo(
  base: OverlayBase,
  changes: SearchedChanges,
  place: {
    readonly name: string;
    readonly note: string;
    readonly file: string | undefined;
    readonly isPacked: boolean;
  },
): Promise<AddOverlayReport> {
  const { below, location, signal } = base;
  const known = classNamesOf(below);
  const classes = classListOf(below, changes);
  const wanted = new Wanted(changes, known, classes);
  // Expressions may use any column. Without an expression, a few columns suffice.
  const parts = changes.excludeWhere === undefined ? (['key', 'source', 'cls', 'columns'] as const) : INDEX_PARTS;
  const columns = changes.excludeWhere === undefined ? undefined : namesInWhere(changes.excludeWhere);
  const counts = new ChangeCounter(below, classes);
  let isEmpty = classes === null;
  async function* entries(): AsyncGenerator<Iterable<OverlayEntry>> {
    if (classes !== null) yield [{ classes }];
    for await (const shown of shownShards(base, parts, columns)) {
      const changed = [...wanted.entriesOf(shown, (await changes.labels?.pageOf(shown.shard)) ?? null)];
      for (const entry of changed) counts.add(entry);
      isEmpty &&= changed.length === 0;
      yield place.isPacked ? packedEntries(shown.shard, shown.index.samples, changed) : changed;
    }
    signal?.throwIfAborted();
    wanted.checkAllFound(location);
    await checkLabelsFound(location, changes.labels);
    if (isEmpty)
      throw new OptionError({}, `The overlay "${place.name}" would change nothing: set at least one change.`);
    if (place.isPacked) yield [counts.entry()];
  }
  const saved = await saveOn(base, place, entries());
  const { excluded, relabelled, set } = counts;
  const newClasses = addedClasses(known, changes)
    .filter((cls) => !changes.classes?.includes(cls))
    .map((cls, at) => ({ name: cls, hint: at < HINTED ? didYouMean(cls, known) : '' }));
  return { ...saved, excluded, relabelled, set, classes: (classes ?? below.classes).length, newClasses };
}

/** Returns class names that are in the labels and not in the dataset, sorted; numbers by their values. */
function addedClasses(known: readonly string[], { rename, labels }: SearchedChanges): string[] {
  const names = new Set([...known, ...(rename?.keys() ?? []), '']);
  const added = [...(labels?.classes ?? [])].filter((cls) => !names.has(cls));
  return sortedByValue(added) ?? added.sort();
}

/** Returns the class list of the overlay, or null if it is the list of the layers below. */
function classListOf(below: Layers, changes: SearchedChanges): OverlayClass[] | null {
  const { rename, classes } = changes;
  const known = classNamesOf(below);
  const added = addedClasses(known, changes);
  if (rename === undefined && classes === undefined && added.length === 0) return null;
  for (const old of rename?.keys() ?? []) {
    if (!known.includes(old)) throw noClass(old, known);
  }
  const from = new Map<string, number[]>();
  known.forEach((name, number) => {
    const now = rename?.get(name) ?? name;
    from.set(now, [...(from.get(now) ?? []), number]);
  });
  for (const name of added) from.set(name, from.get(name) ?? []);
  if (classes === undefined) return Array.from(from, ([name, numbers]) => ({ name, from: numbers }));
  const lost = [...from.keys()].find((name) => !classes.includes(name));
  if (lost !== undefined || new Set(classes).size < classes.length) {
    throw new OptionError(
      {},
      lost === undefined
        ? 'The new list of classes names a class twice.'
        : `The new list of classes lacks "${lost}": name every class, or merge it into another (rename).`,
    );
  }
  return classes.map((name) => ({ name, from: from.get(name) ?? [] }));
}

/** Returns the names of classes. In shards of other software, classes without names are named by their numbers. */
export function classNamesOf({ classes, classSamples }: Pick<Layers, 'classes' | 'classSamples'>): readonly string[] {
  return classes.length > 0 ? classes : classSamples.map((_, number) => String(number));
}

export function noClass(name: string, known: readonly string[]): OptionError {
  const list = known.length === 0 ? 'it has none' : `there are ${known.slice(0, 20).join(', ')}`;
  return new OptionError({}, `The dataset has no class "${name}": ${list}.`);
}

/** Keys, paths and classes that are searched in the indexes. */
class Wanted {
  readonly #excludeKeys: ReadonlySet<string>;
  readonly #missingKeys: Set<string>;
  readonly #numbers: ReadonlyMap<string, number>;
  /** New numbers of classes below, for those that change. */
  readonly #now: ReadonlyMap<number, number>;
  readonly #where: ReturnType<typeof compileWhere> | undefined;

  constructor(changes: SearchedChanges, classesBelow: readonly string[], classes: readonly OverlayClass[] | null) {
    this.#excludeKeys = new Set(changes.excludeKeys);
    this.#missingKeys = new Set(this.#excludeKeys);
    const names = classes?.map(({ name }) => name) ?? classesBelow;
    this.#numbers = new Map(names.map((name, number) => [name, number]));
    this.#now = new Map(classes?.flatMap(({ from }, number) => from.map((old) => [old, number] as const)));
    this.#where = changes.excludeWhere === undefined ? undefined : compileWhere(changes.excludeWhere, classesBelow);
  }

  /** Yields the changes in a shard. `page` has the labels of its samples. */
  *entriesOf({ shard, index, gone }: ShownShard, page: LabelPage | null): Generator<OverlayEntry> {
    const { key, cls, samples } = index;
    const ids = page?.labels.by === 'path' ? index.source! : key!;
    const isOut = this.#where?.(index as ShardIndex);
    for (let row = 0; row < samples; row++) {
      if (gone[row] === 1) continue;
      const place = [shard, row] as const;
      const was = cls![row]!;
      const name = key![row]!;
      this.#missingKeys.delete(name);
      const label = page?.rowOf(ids[row]!);
      if (this.#excludeKeys.has(name) || isOut?.(row) === true) {
        yield { exclude: place, key: name, was };
        continue;
      }
      if (label === undefined) continue;
      yield* this.#labelEntries(page!.labels, label, { place, was, key: name, index, row });
    }
  }

  *#labelEntries(
    { cls: names, columns }: LabelChanges,
    label: number,
    {
      place,
      was,
      key,
      index,
      row,
    }: { place: readonly [number, number]; was: number; key: string; index: IndexPieces; row: number },
  ): Generator<OverlayEntry> {
    const name = names?.[label] ?? '';
    const cls = name === '' ? undefined : this.#numbers.get(name);
    if (cls === undefined && name !== '') throw noClass(name, [...this.#numbers.keys()]);
    if (cls !== undefined && cls !== (this.#now.get(was) ?? was)) yield { cls, at: place, key, was };
    if (columns.size === 0) return;
    const set = Array.from(columns, ([column, values]) => [column, values[label] ?? null] as const).filter(
      ([column, value]) => value !== (index.columns!.get(column)?.[row] ?? null),
    );
    if (set.length > 0) yield { set, at: place, key };
  }

  checkAllFound(location: string): void {
    refuseMissingKeys('excludeKeys', this.#missingKeys, location);
  }
}

async function checkLabelsFound(location: string, labels: LabelSource | undefined): Promise<void> {
  const lost = (await labels?.lost()) ?? null;
  if (lost === null) return;
  throw new OptionError(
    { key: lost.first },
    `${lost.count} of ${lost.rows} labels name a ${labels!.by} that is not in ${location}. The first is "${lost.first}".`,
  );
}
