import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type HeldLock, isDead, lookAtLock, newLockText, parseTemporaryName, temporaryName } from '@shardtool/base';

const CLAIM = '.claim';

/** The largest key, for pieces without a planned use. As a time in seconds, every file system can store it. */
const NEVER = 15_000_000_000;

/** The process that has claimed a piece. */
export interface Owner extends HeldLock {
  /** Length of the piece's file. */
  readonly bytes: number;
  /** True if the process has ended, and will never write the piece. */
  readonly isGone: boolean;
}

/**
 * The files of a cache:
 *
 * - `NAME`: a piece. Its modification time is its key.
 * - `NAME.claim`: the process that will write the piece, in the form of a lock file, and the length of the piece's file.
 * - `NAME.TOKEN.part`: the part of the piece that the process with that claim has written.
 */
export class PieceFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Path of the file of a piece. */
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

  /** Returns false if the piece does not exist any more. */
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

  /** Names of the pieces that are stored. */
  names(): string[] {
    return this.#files().filter((file) => !file.endsWith(CLAIM) && parseTemporaryName(file) === null);
  }

  /** Names of the pieces that are claimed, whether they are stored or not. */
  claimed(): string[] {
    return this.#files().flatMap((file) => (file.endsWith(CLAIM) ? file.slice(0, -CLAIM.length) : []));
  }

  /** Claims a piece for this process and returns the token of the claim. If the disk is full, no file is left. */
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

  /** Removes the claim of a process that has ended, and the part that it wrote. */
  clearClaim(name: string, { holder }: Owner): void {
    if (holder !== null) rmSync(this.partOf(name, holder.token), { force: true });
    this.unclaim(name);
  }

  /** The process that has claimed the piece; null if there is no claim, or the claim cannot be read. */
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

  /** Path at which the process with this claim writes the piece. */
  partOf(name: string, token: string): string {
    return temporaryName(this.pathOf(name), token);
  }

  /** Removes parts that were written for claims that no longer exist. */
  removeLeftParts(): void {
    for (const file of this.#files()) {
      const part = parseTemporaryName(file);
      // A temporary file of a claim belongs to a process that is creating or checking that claim.
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

/**
 * Also false if no file can be created in the folder: the age of the claim is then unknown, and its owner counts as
 * alive.
 */
function isGone(claim: HeldLock): boolean {
  try {
    return isDead(claim);
  } catch {
    return false;
  }
}

/** The key as it is stored in the time of a file. */
export function keptKey(key: number): number {
  return Math.min(NEVER, key);
}
