import { type Dirent, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
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

/**
 * Lists folders of one tree for a walk from the top down: names that begin with a dot are left out, and each link is
 * replaced by what it leads to. A folder is listed once: at its own path if it lies in the tree, else at the first link
 * to it that is walked.
 */
export class FolderReader {
  /** Paths of folders that were left out, since another path leads to them too. */
  readonly repeated: string[] = [];
  /** By the path: why it cannot be packed. A walk that leaves it out goes on. */
  readonly #refused = new Map<string, FileNameError | LinkLoopError>();
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
   * The entries of the folder at `path` (absolute), those that {@link refusal} tells of included. Throws
   * {@link SourceError} where it cannot be read, and that refusal where it is one of them.
   */
  list(path: string): FolderEntry[] {
    const refusal = this.#refused.get(path);
    if (refusal !== undefined) throw refusal;
    try {
      const real = this.#realPath(path);
      if (real === this.#apart) return [];
      const first = this.#listed.get(real) ?? path;
      if (first !== path) {
        this.repeated.push(path);
        return [];
      }
      this.#listed.set(real, path);
      return this.#entries(path, real);
    } catch (cause) {
      if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
      throw unreadable(path, cause);
    }
  }

  /**
   * Why what was listed at `path` (absolute), or without a path any of it, cannot be packed: {@link LinkLoopError} for a
   * link to a folder above, {@link FileNameError} for a name that cannot be a key.
   */
  refusal(path?: string): FileNameError | LinkLoopError | undefined {
    return path === undefined ? this.#refused.values().next().value : this.#refused.get(path);
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
    for (const entry of this.#access.entries(path)) {
      const { name } = entry;
      if (name.startsWith('.')) {
        if (this.#isFolder(path, entry)) this.#hidden.push(join(path, name));
        continue;
      }
      const odd = oddName(path, name);
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
      if (real === target || real.startsWith(`${target}/`)) return this.#refuse(folder, name, true, loop(path, target));
    }
    if (this.#isWalked(target)) {
      this.repeated.push(path);
      return entryOf(name, 'other');
    }
    this.#real.set(path, target);
    return entryOf(name, 'folder');
  }

  #refuse(folder: string, name: string, isFolder: boolean, why: FileNameError | LinkLoopError): FolderEntry {
    this.#refused.set(join(folder, name), why);
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

/** Why a name cannot be a key; null where it can. */
function oddName(folder: string, name: string): FileNameError | null {
  const found = name.includes(REPLACEMENT) ? undecodable(folder, name) : null;
  return found ?? (name.search(LINE_BREAK) === -1 ? null : lineBreak(folder, name));
}

/** A name with U+FFFD is either that, or one whose bytes are not UTF-8: those show when they are asked for. */
function undecodable(folder: string, name: string): FileNameError | null {
  const bytes = Buffer.from(name);
  const names = readdirSync(folder, { encoding: 'buffer' });
  if (names.some((raw) => raw.equals(bytes))) return null;
  const raw = names.find((candidate) => candidate.toString() === name) ?? bytes;
  return new FileNameError(
    { path: join(folder, name) },
    `The name of ${join(folder, escapeBytes(raw))} is not UTF-8; rename it (convmv does it for a whole folder), or leave it out with "exclude" (--exclude).`,
  );
}

/** Bytes as text, with \xNN for those that are not ASCII. */
function escapeBytes(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[^ -~]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function lineBreak(folder: string, name: string): FileNameError {
  const path = join(folder, name);
  return new FileNameError(
    { path },
    `The name of ${JSON.stringify(path)} has a line break in it; rename or remove it, or leave it out with "exclude" (--exclude).`,
  );
}

function loop(path: string, target: string): LinkLoopError {
  return new LinkLoopError(
    { path },
    `The link ${path} leads back to ${target}, which is a folder above it; remove the link, or leave it out with "exclude" (--exclude).`,
  );
}
