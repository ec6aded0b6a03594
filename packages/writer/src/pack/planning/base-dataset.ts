import { join } from 'node:path';
import { inTurn, OptionError, option, sentence } from '@shardtool/base';
import { type ColumnType, type Manifest, shardNameOf } from '@shardtool/format';
import { openStorage } from '@shardtool/storage';
import { KeyCollisionError } from '../../errors.js';
import { type AppendBase, readBaseIndex } from '../../output/append-base.js';
import { readTombstones } from '../../output/tombstones.js';
import type { Naming } from '../../plan/naming.js';
import { isProvenanceColumn } from '../../plan/provenance.js';
import type { ShardPlan } from '../../plan/shard-plan.js';
import { pathAt } from '../../source/file-table.js';
import type { SourceFiles } from '../../source/source-files.js';

/** Number of shards whose indexes are read concurrently. */
export const READ_AT_ONCE = 8;

/** The prefix of a shard's name: the text before its number and dash. */
export function nameOf(file: string | undefined): string {
  return /^(.+)-\d{6,}\./.exec(unchangedName(file ?? ''))?.[1] ?? '';
}

/**
 * Number of the first added shard: the one after all shards with the same name. `others` are names of files in the folder:
 * shards of other versions of the dataset keep their numbers, too.
 */
export function nextNumber({ shards }: Pick<Manifest, 'shards'>, name: string, others: readonly string[] = []): number {
  let next = 0;
  for (const file of [...shards.map((shard) => shardNameOf(shard.file)), ...others].map(unchangedName)) {
    const number = /(?:^|-)(\d{6,})\.[^.]*$/.exec(file)?.[1];
    if (number !== undefined && nameOf(file) === name) next = Math.max(next, Number(number) + 1);
  }
  return next;
}

/** The name that a shard had before a change wrote it again: `000003.tar` for `000003-v1a2b3c4d.tar`. */
function unchangedName(file: string): string {
  return file.replace(/-v[0-9a-f]{8}(?=\.)/, '');
}

/** Files of the source that a dataset has. */
export interface PackedFiles {
  /** 1 for each file that is the image of a sample of the dataset, or of an erased one, or was bad when it was packed. */
  readonly marks: Uint8Array;
  /** Number of samples whose files are in the source, by the file of their shard. Shards without any are absent. */
  readonly samples: ReadonlyMap<string, number>;
}

/** Finds the files of a dataset. Throws {@link OptionError} if the indexes do not record the files of the samples. */
export async function findPacked(base: AppendBase, files: SourceFiles, naming: Naming): Promise<PackedFiles> {
  const marks = new Uint8Array(files.count);
  const samples = new Map<string, number>();
  const reader = files.reader();
  const mark = (paths: readonly string[]): number => {
    let found = 0;
    for (const file of reader.findAll(paths)) {
      if (file === -1) continue;
      marks[file] = 1;
      found++;
    }
    return found;
  };
  const indexes = inTurn(base.manifest.shards, READ_AT_ONCE, async ({ file }) => ({
    file,
    source: (await readBaseIndex(base, file, ['source'])).source,
  }));
  for await (const { file, source } of indexes) {
    if (source.includes('')) {
      const message = `${join(base.folder, file)}: its index does not record the files of its samples, so shardtool cannot tell which files are new; pack all of them to another folder.`;
      throw new OptionError({ shard: file }, message);
    }
    const found = mark(source);
    if (found > 0) samples.set(file, found);
  }
  const erased = await readTombstones(await openStorage(base.location, base.storage));
  for (let file = 0; erased.size > 0 && file < files.count; file++) {
    const key = marks[file] === 1 ? undefined : naming.nameOf(reader.path(file))?.key;
    if (key !== undefined && erased.has(key)) marks[file] = 1;
  }
  // A duplicate of a bad image may itself be intact.
  mark(base.quarantined.filter(({ standsFor }) => standsFor === undefined).map(({ path }) => path));
  return { marks, samples };
}

/** A new image whose key is already in the dataset, and the error for it. */
export interface TakenKey {
  readonly path: string;
  readonly error: KeyCollisionError;
}

/** Finds new images with the key of a packed image: `cat/1.png`, if `cat/1.jpg` was packed. */
export async function findTakenKeys(
  base: AppendBase,
  shards: Iterable<ShardPlan>,
  naming: Naming,
  replaced: Readonly<Record<string, readonly number[]>> = {},
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
  const indexes = inTurn(base.manifest.shards, READ_AT_ONCE, async ({ file }) => ({
    file,
    ...(await readBaseIndex(base, file, ['key', 'source'])),
  }));
  for await (const { file, key, source } of indexes) {
    const isReplaced = new Set(replaced[file]);
    for (let row = 0; row < key.length; row++) {
      if (isReplaced.has(row)) continue;
      const path = added.get(key[row]!);
      if (path === undefined) continue;
      const paths = [source[row]!, path];
      const error = new KeyCollisionError(
        { shard: file, key: key[row], paths },
        `${path} would have the key "${key[row]}", which ${paths[0]} already has in the dataset; rename or exclude it.`,
      );
      taken.push({ path, error });
    }
  }
  return taken;
}

/**
 * Types of the label columns of new shards: those of the dataset, and then new ones, which the samples of the dataset do
 * not have. Throws {@link OptionError} if a column of the dataset is missing or of another type.
 */
export function appendColumnTypes(
  { columns, fields }: Manifest,
  found: ReadonlyMap<string, ColumnType>,
): ReadonlyMap<string, ColumnType> {
  const added = [...found].filter(([name]) => !columns.some((column) => column.name === name));
  // Columns from inside fields (`index --columns`) are added to the new shards by running that command again.
  const isInside = (name: string) => !found.has(name) && fields.some((field) => name.startsWith(`${field.name}.`));
  return new Map([
    ...columns.map(({ name, type }) => [name, isInside(name) ? type : checkType(name, type, found.get(name))] as const),
    ...added,
  ]);
}

function checkType(name: string, type: ColumnType, found: ColumnType | undefined): ColumnType {
  if (found === type || (found === 'int' && type === 'double')) return type;
  if (found === undefined && isProvenanceColumn(name)) {
    const message = sentence`The dataset has the column "${name}", but now neither the labels nor ${option('provenance')} add it. Remove ${option('provenance')}, so that the setting of the dataset is used, or add the column to the labels.`;
    throw new OptionError({}, message);
  }
  const what =
    found === undefined
      ? `has the label column "${name}"`
      : `has values of the type ${type} in the label column "${name}"`;
  const given =
    found === undefined
      ? 'but no labels with it were given; add it to the labels'
      : `but the labels have ${found}; use the same type`;
  throw new OptionError({}, `The dataset ${what}, ${given}.`);
}

/** Checks that new classes follow those of the dataset, whose numbers do not change. */
export function checkAppendedClasses({ classes }: Manifest, given: readonly string[]): void {
  const moved = classes.findIndex(({ name }, number) => given[number] !== name);
  if (moved === -1) return;
  const message = sentence`Class ${moved} of the dataset is "${classes[moved]!.name}", but the option ${option('classes')} has "${given[moved] ?? ''}" there; start the list with the classes of the dataset.`;
  throw new OptionError({}, message);
}
