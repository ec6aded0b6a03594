import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ManifestError, VersionError } from '@shardtool/base';
import {
  COLUMN_TYPES,
  createManifest,
  hasChecksum,
  indexPathOf,
  isManifestAsWritten,
  layoutOf,
  layoutOfName,
  MANIFEST_FILE,
  type Manifest,
  type ManifestShard,
  type OutputLayoutName,
  readManifest,
  WRITTEN_LAYOUTS,
} from '@shardtool/format';
import { OutputNotEmptyError } from '../errors.js';
import { type PackNote, readNote } from '../output/pack-note.js';
import { folderClass } from '../plan/classes.js';
import { shardPaths } from '../shard/shard-paths.js';
import { readWhatIsLeft } from './evidence.js';

/** The manifest of a dataset, which may have been rebuilt from what is left. */
export interface KnownManifest {
  readonly manifest: Manifest;
  /** True if the manifest in the folder is unchanged. */
  readonly isWhole: boolean;
  /** Numbers of classes whose names are lost. */
  readonly lostClasses: readonly number[];
  /** Numbers of classes whose names are only in a damaged manifest. */
  readonly unprovenClasses: readonly number[];
}

/**
 * Reads dataset.json, or rebuilds it from its readable lines, the note of the pack, the file names, and the indexes. A
 * rebuilt record of a shard counts only if the shard's content agrees. Throws {@link UnfinishedPackError} if there is
 * no manifest, and {@link VersionError} if a newer version wrote it.
 */
export async function knownManifest(folder: string): Promise<KnownManifest> {
  const text = () => readFileSync(join(folder, MANIFEST_FILE), 'utf8');
  try {
    const manifest = await readManifest(folder);
    return { manifest, isWhole: hasChecksum(text()), lostClasses: [], unprovenClasses: [] };
  } catch (error) {
    const isDamaged = error instanceof ManifestError || (error instanceof VersionError && !isManifestAsWritten(text()));
    if (!isDamaged) throw error;
  }
  return putTogether(folder, readLines(text()));
}

/** Items of the lists in the manifest, one per line; null for an unreadable line. */
interface Lines {
  readonly classes: readonly (Record<string, unknown> | null)[];
  readonly fields: readonly (Record<string, unknown> | null)[];
  readonly columns: readonly (Record<string, unknown> | null)[];
  readonly shards: readonly (Record<string, unknown> | null)[];
}

const SECTIONS = ['classes', 'fields', 'columns', 'shards'] as const;

/** Reads lists with one item per line: see `manifestText`. If a list's first line is damaged, the list is lost. */
function readLines(text: string): Lines {
  const lines = { classes: [], fields: [], columns: [], shards: [] } as Record<
    (typeof SECTIONS)[number],
    (Record<string, unknown> | null)[]
  >;
  let section = -1;
  for (const line of text.split('\n')) {
    const named = SECTIONS.findIndex((name) => line.startsWith(`  "${name}": [`));
    if (line.startsWith('   ')) {
      if (section !== -1) lines[SECTIONS[section]!].push(item(line));
    } else section = named;
  }
  return lines;
}

function item(line: string): Record<string, unknown> | null {
  try {
    return JSON.parse(line.trim().replace(/,$/, ''));
  } catch {
    return null;
  }
}

async function putTogether(folder: string, lines: Lines): Promise<KnownManifest> {
  const { format, shards } = await findShardFiles(folder, lines);
  const indexes = await readIndexes(folder, shards);
  const { names, lost, unproven } = classNames(lines, indexes.folders, indexes.classes);
  const columns =
    indexes.columns.size > 0 ? [...indexes.columns].map(([name, type]) => ({ name, type })) : lineColumns(lines);
  const manifest = createManifest({
    format,
    classes: names.map((name) => ({ name, samples: 0 })),
    fields: indexes.fields,
    columns,
    shards,
  });
  return { manifest, isWhole: false, lostClasses: lost, unprovenClasses: unproven };
}

/**
 * Returns the shards in order, with their records in the manifest's lines. Missing records have zeros, which match no
 * file.
 */
async function findShardFiles(
  folder: string,
  lines: Lines,
): Promise<{ format: OutputLayoutName; shards: ManifestShard[] }> {
  const names = readdirSync(folder);
  const note = noteOf(folder);
  const format = note?.format ?? WRITTEN_LAYOUTS.find((kind) => names.some((name) => layoutOfName(name) === kind));
  if (format === undefined) {
    throw new ManifestError(
      { path: folder },
      `${join(folder, MANIFEST_FILE)} is damaged, and there are no shards next to it; restore the folder.`,
    );
  }
  const layout = await layoutOf(format);
  const recorded = new Map(lines.shards.filter((line) => line !== null).map((line) => [line.file, line]));
  const there = names.filter((name) => name.endsWith(layout.extension)).sort();
  const stems = new Set([...(note?.shards ?? []), ...there.map((name) => name.slice(0, -layout.extension.length))]);
  const shards: ManifestShard[] = [];
  for (const stem of stems) {
    const { file, index } = shardPaths(layout, stem);
    const isGone = !existsSync(join(folder, file)) && !existsSync(join(folder, index));
    // The note also lists shards of which an earlier repair found nothing.
    if (isGone && !recorded.has(file) && !lines.shards.includes(null)) continue;
    shards.push({ file, ...recordOfLine(recorded.get(file)) });
  }
  return { format, shards };
}

function recordOfLine(line: Record<string, unknown> = {}): Omit<ManifestShard, 'file'> {
  const number = (value: unknown) => (Number.isSafeInteger(value) ? (value as number) : 0);
  return {
    bytes: number(line.bytes),
    samples: number(line.samples),
    crc32: typeof line.crc32 === 'string' ? line.crc32 : '00000000',
    maxSampleBytes: number(line.maxSampleBytes),
  };
}

/** Returns the note of the pack; null if it cannot be read. */
function noteOf(folder: string): PackNote | null {
  try {
    return readNote(folder);
  } catch (error) {
    if (error instanceof OutputNotEmptyError) return null;
    throw error;
  }
}

interface IndexFacts {
  /** Upper limit of class numbers, exclusive. */
  readonly classes: number;
  /** Folder of the class of each number, if there is one. */
  readonly folders: ReadonlyMap<number, string>;
  readonly columns: Map<string, Manifest['columns'][number]['type']>;
  /** `samples` is the number of all samples if every sample has the field, and -1 otherwise. */
  readonly fields: Manifest['fields'];
}

/** Collects the contents of all readable indexes. */
async function readIndexes(folder: string, shards: readonly ManifestShard[]): Promise<IndexFacts> {
  const folders = new Map<number, string>();
  const columns = new Map<string, Manifest['columns'][number]['type']>();
  /** True if all samples have the field. */
  const fields = new Map<string, boolean>();
  let classes = 0;
  let samples = 0;
  for (const { file } of shards) {
    const path = indexPathOf(join(folder, file));
    const index = await readWhatIsLeft(path);
    for (const [row, cls] of index.cls?.entries() ?? []) {
      classes = Math.max(classes, cls + 1);
      const name = folderClass(index.source?.[row] ?? '');
      if (cls >= 0 && name !== undefined && !folders.has(cls)) folders.set(cls, name);
    }
    for (const [name, type] of index.columnTypes) columns.set(name, type);
    for (const name of fields.keys()) if (index.samples > 0 && !index.fields.has(name)) fields.set(name, false);
    for (const [name, { present }] of index.fields) {
      const isEverywhere = present !== undefined && !present.includes(0);
      fields.set(name, isEverywhere && (fields.get(name) ?? samples === 0));
    }
    samples += index.samples;
  }
  const total = shards.reduce((sum, shard) => sum + shard.samples, 0);
  const counted = Array.from(fields, ([name, isEverywhere]) => ({ name, samples: isEverywhere ? total : -1 }));
  return { classes, folders, columns, fields: counted };
}

/** Names by number: from the folders if those are the classes, otherwise from the manifest's lines. */
function classNames(
  { classes: lines }: Lines,
  folders: ReadonlyMap<number, string>,
  found: number,
): { names: string[]; lost: number[]; unproven: number[] } {
  const said = lines.map((line) => (typeof line?.name === 'string' ? line.name : undefined));
  // Lines may be lost, so that later ones have moved up.
  const known = said.filter((name) => name !== undefined);
  const agreeing = known.filter((name) => [...folders.values()].some((folder) => resembles(name, folder))).length;
  const areFolders = new Set(folders.values()).size === folders.size && agreeing * 2 >= known.length;
  const lost: number[] = [];
  const unproven: number[] = [];
  const names = Array.from({ length: Math.max(found, said.length) }, (_, cls) => {
    const folder = areFolders ? folders.get(cls) : undefined;
    if (folder !== undefined) return folder;
    (said[cls] === undefined ? lost : unproven).push(cls);
    return said[cls] ?? String(cls);
  });
  return { names, lost, unproven };
}

/** True if two texts are equal except for a few characters. */
function resembles(a: string, b: string): boolean {
  const same = [...a].filter((character, i) => character === b[i]).length;
  return a.length === b.length && same * 2 > a.length;
}

function lineColumns({ columns }: Lines): Manifest['columns'] {
  return columns.filter((line): line is Manifest['columns'][number] & Record<string, unknown> => {
    return typeof line?.name === 'string' && COLUMN_TYPES.some((type) => type === line.type);
  });
}
