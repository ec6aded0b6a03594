import { join } from 'node:path';
import { OptionError } from '@shardtool/base';
import {
  type ColumnType,
  indexPathOf,
  isTableLayout,
  type Manifest,
  readShardIndex,
  shardNameOf,
} from '@shardtool/format';
import { KeyCollisionError } from '../errors.js';
import { OUTPUT_OPTIONS, PACK_OPTIONS } from '../option-table.js';
import { type CheckedOptions, checkOptions, PACK_DEFAULTS, type PackOptions } from '../options.js';
import type { PackNote } from '../output/pack-note.js';
import type { Naming } from '../plan/naming.js';
import type { ShardPlan } from '../plan/shard-plan.js';
import type { QuarantinedFile } from '../shard/shard-job.js';
import { pathAt } from '../source/file-table.js';
import type { SourceFiles } from '../source/source-files.js';

/** The dataset that a pack adds shards to. */
export interface AppendBase {
  readonly folder: string;
  readonly manifest: Manifest;
  /** What was bad when it was packed. */
  readonly quarantined: readonly QuarantinedFile[];
}

/**
 * The options of a pack that adds to the dataset in `output`: what is left out is as the dataset has it. Throws
 * {@link OptionError} where something is given that the dataset has otherwise, and those of `checkOptions`.
 */
export function settleAppend(
  output: string,
  { format, shards }: Manifest,
  { otherIndexes, options: made = {} }: Pick<PackNote, 'otherIndexes' | 'options'>,
  options: PackOptions,
): SettledOptions {
  if (isTableLayout(format)) {
    const message = `The dataset ${output} has shards of the format ${format}, which "convert" alone writes; add to what it was made of, and convert that anew.`;
    throw new OptionError({ path: output }, message);
  }
  if (options.format !== undefined && options.format !== format) {
    const message = `The dataset ${output} has shards of the format ${format}, and the option "format" is ${options.format}; leave it out.`;
    throw new OptionError({ path: output }, message);
  }
  const { name, index } = options;
  const kept = Object.fromEntries(
    Object.entries(made).filter(([name, value]) => {
      const isPattern = name === 'include' || name === 'exclude';
      return KEPT.has(name) && value !== undefined && isLeftOut(options, name) && !(isPattern && options.files);
    }),
  );
  const checked = checkOptions({
    ...options,
    ...kept,
    format,
    name: name ?? nameOf(shards.at(-1)?.file),
    index: index ?? otherIndexes,
  });
  const said = Object.entries(kept).filter(([name, value]) => !isDefault(name, value));
  return { options: checked, kept: Object.fromEntries(said) };
}

/** Options of a pack that adds to a dataset, and which of them are as the dataset was made with, and not by default. */
export interface SettledOptions {
  readonly options: CheckedOptions;
  readonly kept: Readonly<Record<string, unknown>>;
}

/** What a pack notes down of itself; the dataset itself says what its layout is, and labels come with each pack. */
const KEPT: ReadonlySet<string> = new Set(
  Object.entries({ ...OUTPUT_OPTIONS, ...PACK_OPTIONS })
    .filter(([name, { isRecorded }]) => isRecorded && !['format', 'name', 'index', 'labels'].includes(name))
    .map(([name]) => name),
);

function isLeftOut(options: PackOptions, name: string): boolean {
  return (options as Record<string, unknown>)[name] === undefined;
}

function isDefault(name: string, value: unknown): boolean {
  return JSON.stringify((PACK_DEFAULTS as Record<string, unknown>)[name]) === JSON.stringify(value);
}

/** What stands in front of a shard's number and a dash. */
function nameOf(file: string | undefined): string {
  return /^(.+)-\d{6,}\./.exec(file ?? '')?.[1] ?? '';
}

/** The number of the first shard that is added: behind all that have the same name in front. */
export function nextNumber({ shards }: Manifest, name: string): number {
  let next = 0;
  for (const { file } of shards) {
    const number = /(?:^|-)(\d{6,})\.[^.]*$/.exec(shardNameOf(file))?.[1];
    if (number !== undefined && nameOf(file) === name) next = Math.max(next, Number(number) + 1);
  }
  return next;
}

/**
 * 1 for each of the files that is the image of a sample of the dataset, or was bad when it was packed. Throws
 * {@link OptionError} where the indexes do not say which files the samples come from.
 */
export async function markPacked(
  { folder, manifest, quarantined }: AppendBase,
  files: SourceFiles,
): Promise<Uint8Array> {
  const packed = new Uint8Array(files.count);
  const reader = files.reader();
  const mark = (path: string) => {
    const file = reader.find(path);
    if (file !== -1) packed[file] = 1;
  };
  for (const { file } of manifest.shards) {
    const { source } = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['source'] });
    if (source.includes('')) {
      const message = `${join(folder, file)}: its index does not say which files its samples come from, so nobody knows which are new; pack all of them to another folder.`;
      throw new OptionError({ shard: file }, message);
    }
    for (const path of source) mark(path);
  }
  // A duplicate of a bad image may be fine itself.
  for (const { path, standsFor } of quarantined) if (standsFor === undefined) mark(path);
  return packed;
}

/** A new image whose key the dataset has, and the error that it is. */
export interface TakenKey {
  readonly path: string;
  readonly error: KeyCollisionError;
}

/** New images with the key of one that is packed already: `cat/1.png`, where `cat/1.jpg` was packed. */
export async function findTakenKeys(
  { folder, manifest }: AppendBase,
  shards: Iterable<ShardPlan>,
  naming: Naming,
): Promise<readonly TakenKey[]> {
  const taken: TakenKey[] = [];
  const added = new Map<string, string>();
  for (const { samples, fileStart, files } of shards) {
    for (let sample = 0; sample < samples; sample++) {
      const path = pathAt(files, fileStart[sample]!);
      added.set(naming.keyOf(path), path);
    }
  }
  if (added.size === 0) return taken;
  for (const { file } of manifest.shards) {
    const { key, source } = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['key', 'source'] });
    for (let row = 0; row < key.length; row++) {
      const path = added.get(key[row]!);
      if (path === undefined) continue;
      const paths = [source[row]!, path];
      const error = new KeyCollisionError(
        { shard: file, key: key[row], paths },
        `${path} would be "${key[row]}", as ${paths[0]} is in the dataset already; rename or exclude it.`,
      );
      taken.push({ path, error });
    }
  }
  return taken;
}

/** The types of the label columns of new shards. Throws {@link OptionError} unless they are those of the dataset. */
export function appendColumnTypes(
  { columns, fields }: Manifest,
  found: ReadonlyMap<string, ColumnType>,
): ReadonlyMap<string, ColumnType> {
  const strange = [...found.keys()].find((name) => !columns.some((column) => column.name === name));
  if (strange !== undefined) {
    throw new OptionError(
      {},
      `The labels have the column "${strange}", which the dataset does not have; leave it out.`,
    );
  }
  // What `index --columns` found inside of fields, it finds in the new shards when it is run again.
  const isInside = (name: string) => !found.has(name) && fields.some((field) => name.startsWith(`${field.name}.`));
  return new Map(
    columns.map(({ name, type }) => [name, isInside(name) ? type : checkType(name, type, found.get(name))]),
  );
}

function checkType(name: string, type: ColumnType, found: ColumnType | undefined): ColumnType {
  if (found === type || (found === 'int' && type === 'double')) return type;
  const what =
    found === undefined
      ? `has the label column "${name}"`
      : `has values of the type ${type} in the label column "${name}"`;
  const given = found === undefined ? 'give labels with it' : `the labels have ${found}; give them the same type`;
  throw new OptionError({}, `The dataset ${what}, and ${given}.`);
}

/** Where there are new classes, they come behind those of the dataset, whose numbers stay. */
export function checkAppendedClasses({ classes }: Manifest, given: readonly string[]): void {
  const moved = classes.findIndex(({ name }, number) => given[number] !== name);
  if (moved === -1) return;
  const message = `Class ${moved} of the dataset is "${classes[moved]!.name}", and the option "classes" has "${given[moved] ?? ''}" there; begin the list with the dataset's.`;
  throw new OptionError({}, message);
}
