import { type Dirent, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { option, reasonOf, sentence } from '@shardtool/base';
import { FileNameError, LinkLoopError, SourceError } from '../../errors.js';
import { ATONCE, type FolderAccess } from './folder-access.js';
import { linkTarget } from './mount.js';

/** An entry of a folder, as returned by `readdir`; never a link. */
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
/** Glob patterns do not match these characters, so another one is substituted for matching. */
const LINE_BREAK = /[\n\r\u2028\u2029]/g;

/** An entry of a folder that cannot be packed. */
export interface RefusedEntry {
  /** Absolute path; bytes that are not UTF-8 are shown as \xNN. */
  readonly path: string;
  readonly reason: string;
  /** Error for a walk that stops at this entry. */
  readonly error: FileNameError | LinkLoopError;
}

/**
 * Lists the folders of a tree for a walk from the top down. Names that start with a dot are skipped, and each link is
 * replaced by its target. A folder is listed once: at its own path if it is in the tree, otherwise at the first link to
 * it that the walk reaches.
 */
export class FolderReader {
  /** Names of the listed folders right below the root. */
  readonly topFolders: string[] = [];
  /** Paths of folders that were skipped because another path leads to them too. */
  readonly repeated: string[] = [];
  /** Rejected entries by the path as it was listed, which several names that are not UTF-8 may share. */
  readonly #refused = new Map<string, RefusedEntry[]>();
  /** Paths of folders whose names start with a dot. */
  readonly #hidden: string[] = [];
  readonly #root: string;
  /** Maps a walked path to its real path. */
  readonly #real = new Map<string, string>();
  /** Maps a real path to the path at which it was listed. */
  readonly #listed = new Map<string, string>();

  readonly #access: FolderAccess;

  /** Real path of a folder that is not part of the tree, if there is one. */
  readonly #apart: string | null;

  /** `root` is the absolute path of the tree. The folder `apart`, the output, is skipped. */
  constructor(root: string, access: FolderAccess = ATONCE, apart: string | null = null) {
    this.#root = root;
    this.#access = access;
    this.#apart = apart;
  }

  /**
   * Returns the entries of the folder at `path` (absolute), including those that {@link refused} returns. Throws {@link
   * SourceError} if it cannot be read, and the entry's error if the folder itself is rejected.
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
   * Returns the entries at `path` (absolute), or without a path all entries, that cannot be packed: {@link
   * LinkLoopError} for a link to a parent folder, {@link FileNameError} for a name that cannot be a key.
   */
  refused(path?: string): readonly RefusedEntry[] {
    return path === undefined ? [...this.#refused.values()].flat() : (this.#refused.get(path) ?? []);
  }

  /**
   * Paths of folders that were skipped because their names start with a dot, and that no link has led to so far,
   * sorted.
   */
  hiddenFolders(): string[] {
    return this.#hidden.filter((path) => !this.#wasListed(path)).sort();
  }

  /** An error in a skipped folder does not matter: it may have been deleted, or not be readable. */
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
      // A pipe or device is treated as a file, so that reading it reports it as bad.
      const isPlain = entry.isDirectory() || entry.isFile();
      if (entry.isSymbolicLink()) entries.push(this.#follow(path, name));
      else entries.push(isPlain ? entry : entryOf(name, 'file'));
    }
    return entries;
  }

  /**
   * Returns the target of a link. A dangling link is treated as a file if its name has an extension, otherwise as a
   * folder. Reading it reports the error, if it is needed.
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

  /** True if a skipped entry is a folder, or a link to a readable folder. */
  #isFolder(parent: string, entry: Dirent): boolean {
    if (!entry.isSymbolicLink()) return entry.isDirectory();
    try {
      return this.#access.follow(join(parent, entry.name))?.isDirectory() ?? false;
    } catch {
      return false;
    }
  }

  /** True if the walk reaches the folder at its own path. */
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

/** Creates an entry that was not read from a file system. */
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
      ? `The folder ${path} cannot be read: ${reasonOf(cause)}.`
      : sentence`The link ${path} leads to ${target}, which cannot be read: ${reasonOf(cause)}; mount its target, remove the link, or exclude it with ${option('exclude')}.`;
  return new SourceError({ path }, message, { cause });
}

/** Returns an error for an entry whose name cannot be a key, otherwise null. */
function oddName(folder: string, name: string, raw: RawNames): RefusedEntry | null {
  if (name.search(LINE_BREAK) !== -1) return lineBreak(join(folder, name));
  // A name with U+FFFD either contains this character, or has bytes that are not UTF-8.
  const bytes = name.includes(REPLACEMENT) ? raw.take(name) : null;
  if (bytes === null || bytes.equals(Buffer.from(name))) return null;
  const path = join(folder, escapeBytes(bytes));
  const reason = sentence`The name of ${path} is not UTF-8; rename it (convmv can rename a whole folder), or exclude it with ${option('exclude')}.`;
  return {
    path,
    reason: String(reason),
    error: new FileNameError({ path: join(folder, name) }, sentence`${reason}${OR_QUARANTINE}`),
  };
}

/** Raw bytes of the names in a folder, which are needed if a name may not be UTF-8. */
class RawNames {
  readonly #folder: string;
  /** Raw names by their text. */
  #names: Map<string, Buffer[]> | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the bytes of a name. If several names have the same text, each call returns the next one. */
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

/** Formats bytes as text, with \xNN for those that are not ASCII. */
function escapeBytes(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[^ -~]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

const OR_QUARANTINE = sentence` To skip such files and list them in quarantine.jsonl, set ${option('onBad', 'quarantine')}.`;

function lineBreak(path: string): RefusedEntry {
  const reason = sentence`The name of ${JSON.stringify(path)} contains a line break; rename or remove it, or exclude it with ${option('exclude')}.`;
  return { path, reason: String(reason), error: new FileNameError({ path }, sentence`${reason}${OR_QUARANTINE}`) };
}

function loop(path: string, target: string): RefusedEntry {
  const reason = sentence`The link ${path} leads back to ${target}, which contains it; remove the link, or exclude it with ${option('exclude')}.`;
  return { path, reason: String(reason), error: new LinkLoopError({ path }, sentence`${reason}${OR_QUARANTINE}`) };
}
