import { type Dirent, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { FileNameError, LinkLoopError, SourceError } from '../../errors.js';
import { ATONCE, type FolderAccess } from './folder-access.js';
import { linkTarget } from './mount.js';

/** An entry of a folder, as `readdir` gives it; never a link. */
export type FolderEntry = Pick<Dirent, 'name' | EntryQuestion>;

type EntryQuestion =
  | 'isFile'
  | 'isDirectory'
  | 'isSymbolicLink'
  | 'isBlockDevice'
  | 'isCharacterDevice'
  | 'isFIFO'
  | 'isSocket';

const REPLACEMENT = '\ufffd';
/** Glob patterns do not match across these, so they are shown to them as another sign. */
const LINE_BREAK = /[\n\r\u2028\u2029]/g;

/** What stands in a folder and cannot be packed. */
export interface RefusedEntry {
  /** Absolute; bytes that are not UTF-8 as \xNN. */
  readonly path: string;
  readonly reason: string;
  /** For a walk that ends there. */
  readonly error: FileNameError | LinkLoopError;
}

/**
 * Lists folders of one tree for a walk from the top down: names that begin with a dot are left out, and each link is
 * replaced by what it leads to. A folder is listed once: at its own path if it lies in the tree, else at the first link
 * to it that is walked.
 */
export class FolderReader {
  /** Names of the folders right below the root that were listed. */
  readonly topFolders: string[] = [];
  /** Paths of folders that were left out, since another path leads to them too. */
  readonly repeated: string[] = [];
  /** By the path as it was listed, which several names that are not UTF-8 may have in common. */
  readonly #refused = new Map<string, RefusedEntry[]>();
  /** Paths of folders whose names begin with a dot. */
  readonly #hidden: string[] = [];
  readonly #root: string;
  /** By the path walked: where the folder really lies. */
  readonly #real = new Map<string, string>();
  /** By where it really lies: the path on which it was listed. */
  readonly #listed = new Map<string, string>();

  readonly #access: FolderAccess;

  /** Where the folder really lies that is no part of the tree, if there is one. */
  readonly #apart: string | null;

  /** `root` is the absolute path of the tree's top; the folder `apart`, which is written to, is left out. */
  constructor(root: string, access: FolderAccess = ATONCE, apart: string | null = null) {
    this.#root = root;
    this.#access = access;
    this.#apart = apart;
  }

  /**
   * The entries of the folder at `path` (absolute), those that {@link refused} tells of included. Throws
   * {@link SourceError} where it cannot be read, and why it is refused where it is one of them.
   */
  list(path: string): FolderEntry[] {
    const [refused] = this.refused(path);
    if (refused !== undefined) throw refused.error;
    try {
      const real = this.#realPath(path);
      if (real === this.#apart) return [];
      const first = this.#listed.get(real) ?? path;
      if (first !== path) {
        this.repeated.push(path);
        return [];
      }
      this.#listed.set(real, path);
      if (dirname(path) === this.#root) this.topFolders.push(basename(path));
      return this.#entries(path, real);
    } catch (cause) {
      if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
      throw unreadable(path, cause);
    }
  }

  get hasRefused(): boolean {
    return this.#refused.size > 0;
  }

  /**
   * What was listed at `path` (absolute), or without a path all of it, that cannot be packed: {@link LinkLoopError} for a
   * link to a folder above, {@link FileNameError} for a name that cannot be a key.
   */
  refused(path?: string): readonly RefusedEntry[] {
    return path === undefined ? [...this.#refused.values()].flat() : (this.#refused.get(path) ?? []);
  }

  /** Paths of folders that were left out for the dot in front of their names, and that no link has led to so far, sorted. */
  hiddenFolders(): string[] {
    return this.#hidden.filter((path) => !this.#wasListed(path)).sort();
  }

  /** What is left out anyway is no reason to stop: it may be gone by now, or not ours to see. */
  #wasListed(path: string): boolean {
    try {
      return this.#listed.has(this.#access.realPath(path));
    } catch {
      return false;
    }
  }

  #entries(path: string, real: string): FolderEntry[] {
    const entries: FolderEntry[] = [];
    const names = new RawNames(path);
    for (const entry of this.#access.entries(path)) {
      const { name } = entry;
      if (name.startsWith('.')) {
        if (this.#isFolder(path, entry)) this.#hidden.push(join(path, name));
        continue;
      }
      const odd = oddName(path, name, names);
      if (odd !== null) {
        entries.push(this.#refuse(path, name.replace(LINE_BREAK, REPLACEMENT), this.#isFolder(path, entry), odd));
        continue;
      }
      if (entry.isDirectory()) this.#real.set(join(path, name), join(real, name));
      // A pipe or a device passes for a file: it is bad when it is read, where else nobody would hear of it.
      const isPlain = entry.isDirectory() || entry.isFile();
      if (entry.isSymbolicLink()) entries.push(this.#follow(path, name));
      else entries.push(isPlain ? entry : entryOf(name, 'file'));
    }
    return entries;
  }

  /**
   * What a link leads to. One that leads nowhere passes for a file where its name has an ending, and else for a folder:
   * whether it matters shows when that is read.
   */
  #follow(folder: string, name: string): FolderEntry {
    const path = join(folder, name);
    const stat = this.#access.follow(path);
    if (stat === undefined && !name.includes('.')) return entryOf(name, 'folder');
    if (!stat?.isDirectory()) return entryOf(name, 'file');
    const target = this.#access.realPath(path);
    for (let above = folder; this.#real.has(above); above = dirname(above)) {
      const real = this.#realPath(above);
      if (real !== target && !real.startsWith(`${target}/`)) continue;
      return this.#refuse(folder, name, true, loop(path, target));
    }
    if (this.#isWalked(target)) {
      this.repeated.push(path);
      return entryOf(name, 'other');
    }
    this.#real.set(path, target);
    return entryOf(name, 'folder');
  }

  #refuse(folder: string, name: string, isFolder: boolean, refused: RefusedEntry): FolderEntry {
    const path = join(folder, name);
    this.#refused.set(path, [...this.refused(path), refused]);
    return entryOf(name, isFolder ? 'folder' : 'file');
  }

  /** Whether an entry that is left out is a folder, or a link to one that can be seen. */
  #isFolder(parent: string, entry: Dirent): boolean {
    if (!entry.isSymbolicLink()) return entry.isDirectory();
    try {
      return this.#access.follow(join(parent, entry.name))?.isDirectory() ?? false;
    } catch {
      return false;
    }
  }

  /** Whether the walk comes to the folder at its own path. */
  #isWalked(real: string): boolean {
    const root = `${this.#realPath(this.#root)}/`;
    return real.startsWith(root) && !`/${real.slice(root.length)}`.includes('/.');
  }

  #realPath(path: string): string {
    let real = this.#real.get(path);
    if (real === undefined) {
      real = this.#access.realPath(path);
      this.#real.set(path, real);
    }
    return real;
  }
}

/** An entry that was not read from a file system. */
export function entryOf(name: string, kind: 'file' | 'folder' | 'other'): FolderEntry {
  const no = () => false;
  return {
    name,
    isFile: () => kind === 'file',
    isDirectory: () => kind === 'folder',
    isSymbolicLink: no,
    isBlockDevice: no,
    isCharacterDevice: no,
    isFIFO: no,
    isSocket: no,
  };
}

function unreadable(path: string, cause: Error): SourceError {
  const target = linkTarget(path);
  const message =
    target === null
      ? `The folder ${path} cannot be read (${cause.message}).`
      : `The link ${path} leads to ${target}, which cannot be read (${cause.message}); mount what it leads to, remove the link, or leave it out with "exclude" (--exclude).`;
  return new SourceError({ path }, message, { cause });
}

/** An entry whose name cannot be a key; null where it can. */
function oddName(folder: string, name: string, raw: RawNames): RefusedEntry | null {
  if (name.search(LINE_BREAK) !== -1) return lineBreak(join(folder, name));
  // A name with U+FFFD is either that, or one whose bytes are not UTF-8.
  const bytes = name.includes(REPLACEMENT) ? raw.take(name) : null;
  if (bytes === null || bytes.equals(Buffer.from(name))) return null;
  const path = join(folder, escapeBytes(bytes));
  const reason = `The name of ${path} is not UTF-8; rename it (convmv does it for a whole folder), or leave it out with "exclude" (--exclude).`;
  return { path, reason, error: new FileNameError({ path: join(folder, name) }, reason + OR_QUARANTINE) };
}

/** The bytes of names in a folder, which are asked for where a name may not be UTF-8. */
class RawNames {
  readonly #folder: string;
  /** By the name as text. */
  #names: Map<string, Buffer[]> | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The bytes of a name; of several that are one as text, the next. */
  take(name: string): Buffer {
    if (this.#names === null) {
      this.#names = new Map();
      for (const raw of readdirSync(this.#folder, { encoding: 'buffer' })) {
        const text = raw.toString();
        if (text.includes(REPLACEMENT)) this.#names.set(text, [...(this.#names.get(text) ?? []), raw]);
      }
    }
    return this.#names.get(name)?.shift() ?? Buffer.from(name);
  }
}

/** Bytes as text, with \xNN for those that are not ASCII. */
function escapeBytes(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[^ -~]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

const OR_QUARANTINE = ' Or have such files left out and listed in quarantine.jsonl: --on-bad quarantine.';

function lineBreak(path: string): RefusedEntry {
  const reason = `The name of ${JSON.stringify(path)} has a line break in it; rename or remove it, or leave it out with "exclude" (--exclude).`;
  return { path, reason, error: new FileNameError({ path }, reason + OR_QUARANTINE) };
}

function loop(path: string, target: string): RefusedEntry {
  const reason = `The link ${path} leads back to ${target}, which is a folder above it; remove the link, or leave it out with "exclude" (--exclude).`;
  return { path, reason, error: new LinkLoopError({ path }, reason + OR_QUARANTINE) };
}
