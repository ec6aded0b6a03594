import { existsSync, lstatSync, readdirSync, readlinkSync, rmSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import path from 'node:path';
import { isGone, ownMark } from './process-mark.js';

const CLAIM = '.claim';
const PART = '.part';

/** A key that stands for no use within sight; a time that every file system keeps. */
const NEVER = 15_000_000_000;

/** Whose the place of a piece is that is not there yet. */
export interface Owner {
  /** Of its process. */
  readonly mark: string;
  readonly bytes: number;
  /** It has ended, and will never write the piece. */
  readonly isGone: boolean;
}

/**
 * The files of a cache: `NAME`, a piece, whose time of modification is its key; `NAME.claim`, a link that names the process
 * that is to write the piece, and its length; and `NAME.PROCESS.part`, what that process has written of it.
 */
export class PieceFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** The file of a piece. */
  pathOf(name: string): string {
    return path.join(this.folder, name);
  }

  has(name: string): boolean {
    return existsSync(this.pathOf(name));
  }

  /** Length of a piece; 0 where it is not there. */
  sizeOf(name: string): number {
    try {
      return statSync(this.pathOf(name)).size;
    } catch {
      return 0;
    }
  }

  keyOf(name: string): number | null {
    try {
      return Math.round(statSync(this.pathOf(name)).mtimeMs / 1000);
    } catch {
      return null;
    }
  }

  /** False where the piece is not there any more. */
  setKey(name: string, key: number): boolean {
    try {
      utimesSync(this.pathOf(name), new Date(), keptKey(key));
      return true;
    } catch {
      return false;
    }
  }

  remove(name: string): void {
    rmSync(this.pathOf(name), { force: true });
  }

  /** The pieces that are there. */
  names(): string[] {
    return this.#files().filter((file) => !file.endsWith(CLAIM) && !file.endsWith(PART));
  }

  /** The pieces that are claimed, there or not. */
  claimed(): string[] {
    return this.#files().flatMap((file) => (file.endsWith(CLAIM) ? file.slice(0, -CLAIM.length) : []));
  }

  claim(name: string, bytes: number): void {
    symlinkSync(`${ownMark()} ${bytes}`, this.#claimOf(name));
  }

  unclaim(name: string): void {
    rmSync(this.#claimOf(name), { force: true });
  }

  /** Takes away the claim of a process that has ended, with what it had written. */
  clearClaim(name: string, { mark }: Owner): void {
    rmSync(this.#partBy(name, mark), { force: true });
    this.unclaim(name);
  }

  /** Null where nobody is to write the piece. */
  ownerOf(name: string): Owner | null {
    try {
      const claim = this.#claimOf(name);
      const [mark = '', bytes] = readlinkSync(claim).split(' ');
      return { mark, bytes: Number(bytes) || 0, isGone: isGone(mark, Date.now() - lstatSync(claim).mtimeMs) };
    } catch {
      return null;
    }
  }

  /** Where this process writes a piece before it is whole. */
  partOf(name: string): string {
    return this.#partBy(name, ownMark());
  }

  #partBy(name: string, mark: string): string {
    return this.pathOf(`${name}.${mark}${PART}`);
  }

  /** Removes what processes that have ended had written. */
  removeLeftParts(): void {
    for (const file of this.#files()) {
      if (!file.endsWith(PART)) continue;
      const mark = file.slice(0, -PART.length).split('.').at(-1)!;
      const at = this.pathOf(file);
      const ageMs = Date.now() - (lstatSync(at, { throwIfNoEntry: false })?.mtimeMs ?? 0);
      if (isGone(mark, ageMs)) rmSync(at, { force: true });
    }
  }

  #claimOf(name: string): string {
    return this.pathOf(name) + CLAIM;
  }

  #files(): string[] {
    try {
      return readdirSync(this.folder);
    } catch {
      return [];
    }
  }
}

/** A key as a file's time can hold it. */
export function keptKey(key: number): number {
  return Math.min(NEVER, key);
}
