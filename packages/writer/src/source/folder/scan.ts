import { type Stats, stat, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { sortByCodePoint } from '@shardtool/base';
import type { StorageOptions } from '@shardtool/storage';
import { SourceError } from '../../errors.js';
import type { InFlight } from '../ahead/in-flight.js';
import { withoutRepeats } from '../file-table.js';
import { type SourceFiles, SourceFilesBuilder, sourceFilesOf } from '../source-files.js';
import type { SpoolPlace } from '../spool.js';
import { FoldersAhead } from './folder-access.js';
import { type FolderEntry, FolderReader, type RefusedEntry } from './folder-reader.js';
import { linkTarget } from './mount.js';

/** The files below a source, sorted by path. The caller must close them. */
export interface Scan {
  readonly files: SourceFiles;
  /** True if sizes and times were listed with the names. */
  readonly isMeasured: boolean;
  /** Folders that were skipped because another path leads to them too. */
  readonly repeatedFolders: readonly string[];
  /** Folders that were skipped because their names start with a dot. */
  readonly hiddenFolders: readonly string[];
  /** Names of the folders right below the source that were searched, even if they are empty. */
  readonly topFolders: readonly string[];
  /**
   * Entries that are not among the files because their names cannot be keys: paths below the source, and the reason.
   */
  readonly refused: readonly RefusedName[];
}

export interface RefusedName {
  readonly path: string;
  readonly reason: string;
}

/** Selects names below a source. */
export interface PatternOptions {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly signal?: AbortSignal | undefined;
  /** Called from time to time with the number of files found. */
  readonly onFound?: ((files: number) => void) | undefined;
}

export interface ScanOptions extends PatternOptions {
  readonly place: SpoolPlace;
  /** How names that cannot be keys are handled: stop with an error, or skip and report them. */
  readonly onBad: 'raise' | 'quarantine';
  /** Lists folders concurrently; without it one at a time. */
  readonly flight?: InFlight | undefined;
  /** A folder that is skipped because it is the output: its absolute path without links. */
  readonly apart?: string | undefined;
  /** Options for requests to a remote source. */
  readonly storage?: StorageOptions | undefined;
  /** File that lists the files of a remote source, and is read instead of listing the source: see {@link readInventory}. */
  readonly manifest?: string | undefined;
}

/** Throws {@link SourceError} unless `source` is a folder, and `SourceTimeoutError` if `flight` gets no answer. */
export async function checkSourceAhead(source: string, flight: InFlight): Promise<void> {
  const found = await flight.run<Stats | undefined>(source, (done) => stat(source, (_, stats) => done(null, stats)));
  refuseNoFolder(source, found);
}

/** Throws {@link SourceError} unless `source` is a folder. */
export function checkSource(source: string): void {
  refuseNoFolder(source, statSync(source, { throwIfNoEntry: false }));
}

function refuseNoFolder(source: string, stat: Stats | undefined): void {
  if (stat === undefined) {
    const target = linkTarget(source);
    const missing =
      target === null ? 'does not exist' : `is a link to ${target}, which does not exist; mount its target`;
    throw new SourceError({ path: source }, `The source ${source} ${missing}.`);
  }
  if (!stat.isDirectory()) {
    throw new SourceError(
      { path: source },
      `The source ${source} is not a folder; give the folder that contains the images.`,
    );
  }
}

/**
 * Finds the files below the folder `source` that match a pattern of `include` and none of `exclude`. Names that start
 * with a dot are skipped, and links are followed (see {@link FolderReader} for the errors).
 */
export async function scanFolder(source: string, options: ScanOptions): Promise<Scan> {
  const root = resolve(source);
  const ahead = options.flight && new FoldersAhead(options.flight);
  const reader = new FolderReader(root, ahead, options.apart);
  const everything = options.exclude.length === 0 && options.include.every((pattern) => pattern === '**');
  const found = everything ? await walk(root, reader, ahead, options) : await match(root, reader, ahead, options);
  return {
    files: found.files,
    isMeasured: false,
    repeatedFolders: reader.repeated,
    hiddenFolders: reader.hiddenFolders(),
    topFolders: sortByCodePoint(reader.topFolders),
    refused: found.refused.map(({ path, reason }) => ({ path: relative(root, path), reason })),
  };
}

/** Result of a walk. */
interface Found {
  readonly files: SourceFiles;
  readonly refused: readonly RefusedEntry[];
}

/** A folder that is being walked. */
interface OpenFolder {
  /** Its path below the root, with a trailing "/"; '' for the root itself. */
  readonly path: string;
  /** Names of its files, and of its folders with a trailing "/". */
  readonly names: readonly string[];
  next: number;
}

/**
 * Returns all files below `root`. Folder names with a trailing "/" are sorted together with file names, and folders are
 * walked in this order. The paths are therefore sorted, and never kept as strings.
 */
async function walk(
  root: string,
  reader: FolderReader,
  ahead: FoldersAhead | undefined,
  options: ScanOptions,
): Promise<Found> {
  const files = new SourceFilesBuilder(options.place);
  try {
    await walkInto(files, root, reader, ahead, options);
    return { files: files.finish(), refused: reader.refused() };
  } catch (error) {
    files.close();
    throw error;
  }
}

async function walkInto(
  files: SourceFilesBuilder,
  root: string,
  reader: FolderReader,
  ahead: FoldersAhead | undefined,
  { signal, onFound, onBad }: ScanOptions,
): Promise<void> {
  const openFolder = async (path: string): Promise<OpenFolder> => {
    const folder = join(root, path.slice(0, -1));
    await ahead?.ready(folder);
    const entries = reader.list(folder);
    // There are no patterns that could exclude it.
    const { hasRefused } = reader;
    if (hasRefused && onBad === 'raise') throw reader.refused()[0]!.error;
    const isTaken = ({ name }: FolderEntry) => reader.refused(join(folder, name)).length === 0;
    const names = namesIn(hasRefused ? entries.filter(isTaken) : entries);
    ahead?.expect(names.filter((name) => name.endsWith('/')).map((name) => join(folder, name.slice(0, -1))));
    return { path, names, next: 0 };
  };
  const open: OpenFolder[] = [await openFolder('')];
  while (open.length > 0) {
    const folder = open.at(-1)!;
    if (!takeFiles(folder, files)) {
      open.pop();
      continue;
    }
    const path = folder.path + folder.names[folder.next++]!;
    open.push(await openFolder(path));
    signal?.throwIfAborted();
    onFound?.(files.count);
    await setImmediate();
  }
}

/** Takes the files up to the next folder; false if there is no next folder. */
function takeFiles(folder: OpenFolder, files: SourceFilesBuilder): boolean {
  for (; folder.next < folder.names.length; folder.next++) {
    const name = folder.names[folder.next]!;
    if (name.endsWith('/')) return true;
    files.add(folder.path + name);
  }
  return false;
}

function namesIn(entries: readonly FolderEntry[]): string[] {
  const names: string[] = [];
  for (const entry of entries) {
    if (entry.isDirectory()) names.push(`${entry.name}/`);
    else if (entry.isFile()) names.push(entry.name);
  }
  return sortByCodePoint(names);
}

/** Returns the files below `root` that match the patterns. */
async function match(
  root: string,
  reader: FolderReader,
  ahead: FoldersAhead | undefined,
  options: ScanOptions,
): Promise<Found> {
  const refused: RefusedEntry[] = [];
  const takeRefused = (path: string) => {
    const entries = reader.refused(path);
    if (entries.length > 0 && options.onBad === 'raise') throw entries[0]!.error;
    refused.push(...entries);
    return entries.length > 0;
  };
  const paths = await matchPaths(root, listThrough(reader, ahead, takeRefused), options);
  const packable = reader.hasRefused ? paths.filter((path) => !takeRefused(join(root, path))) : paths;
  return { files: sourceFilesOf(packable, options.place), refused };
}

/** Called by the walk of {@link matchPaths} for the entries of a folder. */
type ListFolder = (path: string, options: unknown, callback: (error: Error | null, entries?: unknown) => void) => void;

/** Returns the paths below `root` that match the patterns, sorted. `list` returns the entries of folders. */
export async function matchPaths(root: string, list: ListFolder, options: PatternOptions): Promise<string[]> {
  const { include, exclude, signal, onFound } = options;
  const { default: fastGlob } = await import('fast-glob');
  const stream = fastGlob.stream([...include], {
    cwd: root,
    ignore: [...exclude],
    // With "unique" the paths would be kept twice. Files that match several patterns are removed after sorting.
    unique: false,
    concurrency: 1,
    fs: { readdir: list as typeof import('node:fs').readdir },
  });
  const paths: string[] = [];
  for await (const path of stream) {
    if (paths.push(path as string) % 4096 > 0) continue;
    signal?.throwIfAborted();
    onFound?.(paths.length);
  }
  return withoutRepeats(sortByCodePoint(paths));
}

/**
 * Returns a `readdir` for the walk. It answers asynchronously, since the walk would otherwise nest one call per folder.
 * A folder that `takeRefused` takes has no entries.
 */
function listThrough(
  reader: FolderReader,
  ahead: FoldersAhead | undefined,
  takeRefused: (path: string) => boolean,
): ListFolder {
  return (path, _options, callback) => {
    const list = (): void => {
      try {
        const entries = takeRefused(path) ? [] : reader.list(path);
        // Some of them may not be needed, because a pattern excludes them.
        ahead?.expect(entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name)));
        callback(null, entries);
      } catch (error) {
        callback(error as Error);
      }
    };
    if (ahead === undefined) queueMicrotask(list);
    else ahead.ready(path).then(list, callback);
  };
}
