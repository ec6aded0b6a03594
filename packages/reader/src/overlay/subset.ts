import { CALL_OPTIONS, checkCallOptions, checkLocation, OptionError, type OptionTable } from '@shardtool/base';
import { INDEX_PARTS, type OverlayEntry, rowBits, type ShardIndex } from '@shardtool/format';
import { keyHash } from '../dataset/keys/key-hash.js';
import { refuseMissingKeys } from '../selection/missing-keys.js';
import { compileWhere, namesInWhere } from '../selection/where.js';
import { classNamesOf, noClass } from './add.js';
import { type OverlayPlaceOptions, openBase, type ShownShard, saveOn, shownShards } from './base.js';
import { checkOverlayName } from './save.js';

/** Conditions of a subset. A sample has to match all of them. */
export interface SubsetOptions extends OverlayPlaceOptions {
  /** Name of the new overlay. */
  readonly name: string;
  /** The overlay that the subset builds on. */
  readonly parent?: string | undefined;
  readonly keys?: Iterable<string> | undefined;
  /** Names of classes. */
  readonly classes?: readonly string[] | undefined;
  readonly where?: string | undefined;
  /** A share of the samples, above 0 and at most 1, chosen by the hash of their keys: the same samples each time. */
  readonly share?: number | undefined;
  /** A description of the change, for people who read the log. */
  readonly note?: string | undefined;
}

const OPTIONS = {
  name: { kind: 'text', help: 'Name of the overlay' },
  parent: { kind: 'text', help: 'The overlay below' },
  keys: { kind: 'own', type: 'Iterable<string>', must: 'is a list of keys', help: 'Keys of samples' },
  classes: { kind: 'own', type: 'string[]', must: 'is a list of names of classes', help: 'Names of classes' },
  where: { kind: 'text', help: 'An expression' },
  share: { kind: 'own', type: 'number', must: 'is a number', help: 'A share of the samples' },
  note: { kind: 'text', help: 'A description' },
  storage: CALL_OPTIONS.storage,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

export interface SubsetReport {
  readonly file: string;
  readonly hash: string;
  readonly samples: number;
}

/**
 * Creates an overlay that shows a part of a dataset, with one bit per sample. Throws {@link OptionError} for an unknown
 * class or key, an invalid expression, or a subset without samples.
 */
export async function subsetDataset(location: string, options: SubsetOptions): Promise<SubsetReport> {
  checkLocation('subsetDataset', location);
  checkCallOptions('subsetDataset', OPTIONS, options, {
    keys: isIterable,
    classes: Array.isArray,
    share: (value) => typeof value === 'number',
  });
  const { name, parent, keys, where, share = 1, note = '', storage, signal } = options;
  if (!(share > 0 && share <= 1)) {
    throw new OptionError({}, `The share of a subset is ${share}: it must be above 0 and at most 1.`);
  }
  checkOverlayName(name);
  const base = await openBase(location, parent, { storage, signal });
  const names = classNamesOf(base.below);
  const classes = options.classes && new Set(options.classes.map((cls) => numberOf(cls, names)));
  const wanted = keys && new Set(keys);
  const missing = new Set(wanted);
  const compiled = where === undefined ? undefined : compileWhere(where, base.below.classes);

  let samples = 0;
  const classSamples = names.map(() => 0);
  const choose = ({ shard, index, gone }: ShownShard): OverlayEntry => {
    const { key, cls } = index;
    const holds = compiled?.(index as ShardIndex);
    const isChosen = (row: number): boolean => {
      if (gone[row] === 1) return false;
      missing.delete(key![row]!);
      if (wanted !== undefined && !wanted.has(key![row]!)) return false;
      if (classes !== undefined && !classes.has(cls![row]!)) return false;
      if (share < 1 && keyHash(`subset ${key![row]}`) >= share * 2 ** 32) return false;
      if (holds !== undefined && !holds(row)) return false;
      samples++;
      if (cls![row]! >= 0) classSamples[cls![row]!]!++;
      return true;
    };
    return { keep: shard, rows: rowBits(index.samples, isChosen) };
  };
  const rows: OverlayEntry[] = [];
  const columns = where === undefined ? undefined : namesInWhere(where);
  for await (const shown of shownShards(base, where === undefined ? ['key', 'cls'] : INDEX_PARTS, columns))
    rows.push(choose(shown));
  refuseMissingKeys('keys', missing, location);
  if (samples === 0) throw new OptionError({}, 'No sample is in the subset: widen classes, keys, where or the share.');
  const saved = await saveOn(base, { name, note }, [[{ kept: samples, classSamples }], rows]);
  return { ...saved, samples };
}

function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function numberOf(cls: string, names: readonly string[]): number {
  const number = names.indexOf(cls);
  if (number < 0) throw noClass(cls, names);
  return number;
}
