import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type HeldLock, isDead, lookAtLock, newLockText, parseTemporaryName, temporaryName } from '@shardtool/base';

const CLAIM = '.claim';

/** A key that stands for no use within sight; a time that every file system keeps. */
const NEVER = 15_000_000_000;

/** A process that is to write a piece. */
export interface Owner extends HeldLock {
  /** Of the piece's file. */
  readonly bytes: number;
  /** It has ended, and will never write the piece. */
  readonly isGone: boolean;
}

/**
 * The files of a cache: `NAME`, a piece, whose time of modification is its key; `NAME.claim`, which names the process that is
 * to write the piece as a lock names its holder, and the length of its file; and `NAME.TOKEN.part`, what the process with
 * that claim has written of it.
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

  /** Length of the file of a piece; 0 if there is none. */
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

  /** False if there is no such piece any more. */
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
    return this.#files().filter((file) => !file.endsWith(CLAIM) && parseTemporaryName(file) === null);
  }

  /** The pieces that are claimed, there or not. */
  claimed(): string[] {
    return this.#files().flatMap((file) => (file.endsWith(CLAIM) ? file.slice(0, -CLAIM.length) : []));
  }

  /** Claims a piece for this process and returns the token of the claim. Nothing is left of it where the disk is full. */
  claim(name: string, bytes: number): string {
    const { token, text } = newLockText({ bytes });
    try {
      writeFileSync(this.#claimOf(name), text);
    } catch (error) {
      this.unclaim(name);
      throw error;
    }
    return token;
  }

  unclaim(name: string): void {
    rmSync(this.#claimOf(name), { force: true });
  }

  /** Removes the claim of a process that has ended, with what it had written. */
  clearClaim(name: string, { holder }: Owner): void {
    if (holder !== null) rmSync(this.partOf(name, holder.token), { force: true });
    this.unclaim(name);
  }

  /** Null if no process is to write the piece, or the claim cannot be read. */
  ownerOf(name: string): Owner | null {
    try {
      const claim = lookAtLock(this.#claimOf(name));
      if (claim === null) return null;
      const { bytes } = (claim.holder ?? {}) as { readonly bytes?: unknown };
      return { ...claim, bytes: typeof bytes === 'number' ? bytes : 0, isGone: isGone(claim) };
    } catch {
      return null;
    }
  }

  /** Where the process with this claim writes a piece before it is whole. */
  partOf(name: string, token: string): string {
    return temporaryName(this.pathOf(name), token);
  }

  /** Removes what was written for claims that are not there any more. */
  removeLeftParts(): void {
    for (const file of this.#files()) {
      const part = parseTemporaryName(file);
      // What is written next to a claim belongs to the claim that is about to be made, or looked at.
      if (part === null || part.final.endsWith(CLAIM)) continue;
      if (part.token === null || this.ownerOf(part.final)?.holder?.token !== part.token) {
        rmSync(this.pathOf(file), { force: true });
      }
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

/** A folder that takes no files cannot tell how old a claim is: its owner counts as alive then. */
function isGone(claim: HeldLock): boolean {
  try {
    return isDead(claim);
  } catch {
    return false;
  }
}

/** A key as the time of a file can hold it. */
export function keptKey(key: number): number {
  return Math.min(NEVER, key);
}
