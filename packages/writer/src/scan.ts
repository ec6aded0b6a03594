import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SourceError } from './errors.js';
import { createFileTable, type FileTable, sortByCodePoint, withoutRepeats } from './file-table.js';
import { FolderReader } from './folder-reader.js';

/** The files below a source, sorted by path. */
export interface Scan {
  readonly files: FileTable;
  /** Folders that were left out because another path leads to them too. */
  readonly repeatedFolders: readonly string[];
}

export interface ScanOptions {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly signal?: AbortSignal | undefined;
  /** Told now and then how many files were found. */
  readonly onFound?: ((files: number) => void) | undefined;
}

/** Throws {@link SourceError} unless `source` is a folder. */
export function checkSource(source: string): void {
  const stat = statSync(source, { throwIfNoEntry: false });
  if (stat === undefined) throw new SourceError({ path: source }, `The source ${source} does not exist.`);
  if (!stat.isDirectory()) {
    throw new SourceError(
      { path: source },
      `The source ${source} is not a folder; give the folder that holds the images.`,
    );
  }
}

/**
 * Finds the files below the folder `source` that fit a pattern of `include` and none of `exclude`; names that begin with
 * a dot are left out, links are followed (see {@link FolderReader} for the errors).
 */
export async function scanFolder(source: string, options: ScanOptions): Promise<Scan> {
  const { include, exclude, signal, onFound } = options;
  const reader = new FolderReader();
  const root = resolve(source);
  const everything = exclude.length === 0 && include.every((pattern) => pattern === '**');
  const paths: string[] = [];
  for await (const found of everything ? walk(root, reader) : match(root, include, exclude, reader)) {
    for (const path of found) paths.push(path);
    signal?.throwIfAborted();
    onFound?.(paths.length);
  }
  return { files: createFileTable(withoutRepeats(sortByCodePoint(paths))), repeatedFolders: reader.repeated };
}

/** All files below `root`, folder by folder. Ten times as fast as matching each against a pattern that fits all. */
function* walk(root: string, reader: FolderReader): Generator<readonly string[]> {
  const folders = [''];
  // The array grows while it is walked: folders near the root come before those farther away.
  for (const folder of folders) {
    const below = folder === '' ? '' : `${folder}/`;
    const files: string[] = [];
    for (const entry of reader.list(join(root, folder))) {
      if (entry.isDirectory()) folders.push(below + entry.name);
      else if (entry.isFile()) files.push(below + entry.name);
    }
    yield files;
  }
}

/** The files below `root` that fit the patterns, some thousands at a time. */
async function* match(
  root: string,
  include: readonly string[],
  exclude: readonly string[],
  reader: FolderReader,
): AsyncGenerator<readonly string[]> {
  const { default: fastGlob } = await import('fast-glob');
  const stream = fastGlob.stream([...include], {
    cwd: root,
    ignore: [...exclude],
    // Without "unique" the paths would be kept a second time; patterns that overlap are met after sorting.
    unique: false,
    concurrency: 1,
    fs: { readdir: listThrough(reader) as typeof import('node:fs').readdir },
  });
  let found: string[] = [];
  for await (const path of stream) {
    if (found.push(path as string) < 4096) continue;
    yield found;
    found = [];
  }
  yield found;
}

/** A `readdir` for the walk. The answer comes later, since the walk would nest one call in another for each folder. */
function listThrough(reader: FolderReader) {
  return (path: string, _options: unknown, callback: (error: Error | null, entries?: unknown) => void): void => {
    queueMicrotask(() => {
      try {
        callback(null, reader.list(path));
      } catch (error) {
        callback(error as Error);
      }
    });
  };
}
