import { setMaxListeners } from 'node:events';
import { compareCodePoints, option, sentence, sortByCodePoint } from '@shardtool/base';
import { type Entry, openStorage, shownLocation } from '@shardtool/storage';
import { FileNameError } from '../../errors.js';
import { entryOf } from '../folder/folder-reader.js';
import { matchPaths, type PatternOptions, type RefusedName, type Scan, type ScanOptions } from '../folder/scan.js';
import { type FileFacts, type SourceFiles, SourceFilesBuilder } from '../source-files.js';
import type { SpoolPlace } from '../spool.js';
import { readInventory } from './inventory.js';
import { sortedFiles } from './sorted-files.js';

/** A name in a bucket with the facts that the listing has. */
type ListedFile = Pick<Entry, 'name' | 'size' | 'modifiedMs'>;

const LINE_BREAK = /[\n\r\u2028\u2029]/;
const TOLD_EVERY = 4096;

/**
 * Finds the files of a remote source, whose `root` ends with "/": the same files that `scanFolder` would find in a
 * local copy. Sizes and times are listed with the names. Throws {@link FileNameError} for a name that no folder could
 * contain, and errors of listing.
 */
export async function scanBucket(root: string, options: ScanOptions): Promise<Scan> {
  const { include, exclude, place } = options;
  const found = new BucketNames(root, options);
  const everything = exclude.length === 0 && include.every((pattern) => pattern === '**');
  const files = !everything
    ? await matching(found, options)
    : options.manifest === undefined
      ? await inOrder(found, place)
      : await sortedFiles(found.list(), place);
  return {
    files,
    isMeasured: true,
    repeatedFolders: [],
    hiddenFolders: found.hiddenFolders(),
    // A pattern may exclude all of a folder.
    topFolders: everything ? found.topFolders() : [],
    refused: found.refused(),
  };
}

/** The names in a bucket that can be packed. */
class BucketNames {
  readonly #root: string;
  readonly #options: ScanOptions;
  readonly #hidden = new Set<string>();
  readonly #refused = new Map<string, string>();
  readonly #top = new Set<string>();

  constructor(root: string, options: ScanOptions) {
    this.#root = root;
    this.#options = options;
  }

  /** Lists them in the order of the store. */
  async *list(): AsyncGenerator<ListedFile> {
    const { signal, onFound } = this.#options;
    // One listener for each concurrent request.
    if (signal !== undefined) setMaxListeners(0, signal);
    let found = 0;
    for await (const entry of this.#all()) {
      if (!this.#isTaken(entry.name)) continue;
      const slash = entry.name.indexOf('/');
      if (slash !== -1) this.#top.add(entry.name.slice(0, slash));
      yield entry;
      if (++found % TOLD_EVERY > 0) continue;
      signal?.throwIfAborted();
      onFound?.(found);
    }
  }

  /** All names of the bucket, or of the manifest. */
  async *#all(): AsyncGenerator<ListedFile> {
    const { signal, storage: how, manifest } = this.#options;
    if (manifest !== undefined) {
      yield* readInventory(manifest, this.#root, how);
      return;
    }
    const storage = await openStorage(this.#root, how);
    yield* storage.list('', { deep: true, ...(signal && { signal }) });
  }

  /** Folders that are skipped because their names start with a dot, sorted. */
  hiddenFolders(): string[] {
    return [...this.#hidden].sort();
  }

  /** Names before the first slash, sorted. */
  topFolders(): string[] {
    return sortByCodePoint([...this.#top]);
  }

  /** Skipped names that no folder could contain. */
  refused(): RefusedName[] {
    return Array.from(this.#refused, ([path, reason]) => ({ path, reason }));
  }

  /** False for hidden names, files in hidden folders, and names that are skipped as bad. */
  #isTaken(name: string): boolean {
    if (name.includes('//') || name.startsWith('/') || /(^|\/)\.\.?(\/|$)/.test(name) || LINE_BREAK.test(name)) {
      const path = shownLocation(this.#root) + name;
      const message = `The object name ${JSON.stringify(path)} is not a valid file name: it contains an empty part, "." or "..", or a line break; copy the object to another name, or exclude it.`;
      if (this.#options.onBad === 'raise')
        throw new FileNameError(
          { path },
          sentence`${message} To skip such objects and list them in quarantine.jsonl, set ${option('onBad', 'quarantine')}.`,
        );
      this.#refused.set(name, message);
      return false;
    }
    const dot = name.startsWith('.') ? 0 : name.indexOf('/.') + 1;
    if (dot === 0 && !name.startsWith('.')) return true;
    const end = name.indexOf('/', dot);
    if (end !== -1) this.#hidden.add(this.#root + name.slice(0, end));
    return false;
  }
}

function factsOf({ size, modifiedMs }: ListedFile): FileFacts {
  return { bytes: size, mtimeMs: modifiedMs ?? 0 };
}

/**
 * Stores list names in the order of their UTF-8, which is the order of code points. If a store does not, all names are
 * kept in memory and sorted.
 */
async function inOrder(names: BucketNames, place: SpoolPlace): Promise<SourceFiles> {
  const files = new SourceFilesBuilder(place);
  try {
    let before = '';
    for await (const entry of names.list()) {
      if (compareCodePoints(before, entry.name) >= 0) {
        files.close();
        return await sorted(names, place);
      }
      files.add(entry.name, factsOf(entry));
      before = entry.name;
    }
    return files.finish();
  } catch (error) {
    files.close();
    throw error;
  }
}

async function sorted(names: BucketNames, place: SpoolPlace): Promise<SourceFiles> {
  const facts = await factsByName(names);
  return filesOf([...facts.keys()].sort(compareCodePoints), facts, place);
}

async function matching(names: BucketNames, options: ScanOptions): Promise<SourceFiles> {
  const facts = await factsByName(names);
  return filesOf(await matchingNames(facts.keys(), options), facts, options.place);
}

/** Returns the names that match the patterns, sorted. */
export function matchingNames(names: Iterable<string>, options: PatternOptions): Promise<string[]> {
  return matchPaths('/', listing(names), options);
}

/** Of two files with one name, which a manifest can have, the one with the newer time is kept. */
async function factsByName(names: BucketNames): Promise<Map<string, FileFacts>> {
  const facts = new Map<string, FileFacts>();
  for await (const entry of names.list()) {
    const found = factsOf(entry);
    const before = facts.get(entry.name);
    if (before === undefined || found.mtimeMs > before.mtimeMs) facts.set(entry.name, found);
  }
  return facts;
}

function filesOf(paths: readonly string[], facts: ReadonlyMap<string, FileFacts>, place: SpoolPlace): SourceFiles {
  const files = new SourceFilesBuilder(place);
  try {
    for (const path of paths) files.add(path, facts.get(path));
    return files.finish();
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Emulates `readdir` for names, as if they were the files below "/". */
function listing(names: Iterable<string>) {
  const folders = new Map<string, Map<string, boolean>>([['/', new Map()]]);
  for (const name of names) {
    let folder = '/';
    const parts = name.split('/');
    for (const [i, part] of parts.entries()) {
      const isFile = i === parts.length - 1;
      const entries = folders.get(folder)!;
      // If a name is both a file and a folder, which a file system does not allow, the file keeps its own name.
      entries.set(isFile ? part : `${part}/`, isFile);
      folder = folder === '/' ? `/${part}` : `${folder}/${part}`;
      if (!isFile && !folders.has(folder)) folders.set(folder, new Map());
    }
  }
  return (path: string, _options: unknown, callback: (error: Error | null, entries?: unknown) => void): void => {
    const entries = folders.get(path.length > 1 ? path.replace(/\/$/, '') : path) ?? new Map<string, boolean>();
    queueMicrotask(() =>
      callback(
        null,
        Array.from(entries, ([name, isFile]) => entryOf(isFile ? name : name.slice(0, -1), isFile ? 'file' : 'folder')),
      ),
    );
  };
}
