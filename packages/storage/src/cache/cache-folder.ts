import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileError, makeFolder, OptionError } from '@shardtool/base';
import { underLock } from './folder-lock.js';
import { keptKey, PieceFiles } from './piece-files.js';

/** Says whose a folder is: only in one that has it anything is removed. */
const MARK = 'shardtool-cache';
const LOCK = 'lock';
/** Bytes that are there or promised, as text. It is never less than what lies in the folder. */
const USED = 'used';
const PIECES = 'pieces';
/** Of the free disk, where no size is given. */
const DEFAULT_SHARE = 0.5;
/** What other processes put there is looked for so often. */
const LOOK_MS = 10_000;
const POLL_MS = 10;
/** After the disk could not be written, nothing is kept for so long. */
const UNUSABLE_MS = 30_000;

/** A piece whose place is promised: it is to be written, or given back. */
export interface Claim {
  readonly name: string;
  readonly bytes: number;
}

export interface CacheContents {
  readonly pieces: number;
  readonly bytes: number;
}

/**
 * A folder of pieces of bounded size, for all processes of a machine. A piece is written under another name and renamed, so
 * what is seen is whole; its name says what it is, and its time when it is needed next: the key, largest first evicted.
 * Places are promised and pieces evicted under one lock, and what is promised counts, so that there are never more than
 * `maxBytes`. What a dead process left behind is cleared away by whoever opens the folder next, or wants the same piece.
 * Once open, a folder that fails keeps nothing, and whoever reads through it fetches.
 */
export class CacheFolder {
  readonly folder: string;
  readonly maxBytes: number;
  readonly #pieces: PieceFiles;
  /** What is known to be there: keys by name. Others may have changed it. */
  readonly #known = new Map<string, number>();
  #lookedMs = 0;
  #unusableUntil = 0;

  /** Makes the folder, for its owner alone. Throws {@link OptionError} for one with other things in it, {@link FileError}. */
  constructor(folder: string, maxBytes?: number) {
    this.folder = path.resolve(folder);
    this.#pieces = new PieceFiles(this.#at(PIECES));
    try {
      makeFolder(this.folder, 0o700);
      if (!existsSync(this.#at(MARK))) {
        // The mark is made first: where another process makes the folder just now, it is there as soon as anything is.
        if (readdirSync(this.folder).length > 0 && !existsSync(this.#at(MARK))) throw notOurs(this.folder);
        writeFileSync(this.#at(MARK), 'Pieces of datasets that were fetched. "shardtool cache clear" removes them.\n');
      }
      makeFolder(this.#at(PIECES), 0o700);
      this.#begin();
      const { bavail, bsize } = statfsSync(this.folder);
      this.maxBytes = maxBytes ?? Math.floor((bavail * bsize + this.#used()) * DEFAULT_SHARE);
    } catch (cause) {
      if (cause instanceof OptionError) throw cause;
      throw unusable(this.folder, cause);
    }
  }

  /** On a full disk, what is kept already is used. */
  #begin(): void {
    try {
      underLock(this.#at(LOCK), () => this.#clearAway());
    } catch (error) {
      if (!/^(ENOSPC|EDQUOT)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
      this.#unusableUntil = performance.now() + UNUSABLE_MS;
    }
  }

  /** What a folder holds that is a cache. Throws {@link OptionError} where it is none. */
  static contents(folder: string): CacheContents {
    if (!existsSync(folder))
      throw new OptionError({ path: folder }, `There is no folder ${folder}; name that of a cache.`);
    if (!existsSync(path.join(folder, MARK))) throw notOurs(folder);
    const pieces = new PieceFiles(path.join(folder, PIECES));
    const names = pieces.names();
    return { pieces: names.length, bytes: names.reduce((sum, name) => sum + pieces.sizeOf(name), 0) };
  }

  /** Removes all pieces but those that are being written. */
  static clear(folder: string): CacheContents {
    const before = CacheFolder.contents(folder);
    const cache = new CacheFolder(folder);
    underLock(cache.#at(LOCK), () => {
      for (const name of cache.#pieces.names()) cache.#remove(name);
    });
    return before;
  }

  /** The file of a piece. */
  pathOf(name: string): string {
    return this.#pieces.pathOf(name);
  }

  has(name: string): boolean {
    return this.#pieces.has(name);
  }

  /** The piece was used, and will be again when its key says. */
  use(name: string, key: number): void {
    const kept = keptKey(key);
    if (this.#known.get(name) === kept) return;
    if (!this.#pieces.setKey(name, kept)) this.#known.delete(name);
    else if (this.#known.has(name)) this.#known.set(name, kept);
  }

  /** The piece is not what it should be. */
  drop(name: string): void {
    this.#locked(() => this.#remove(name));
  }

  /**
   * Promises the place of a piece, evicting those that are needed later than `key` says. Null where that would not give
   * enough, where the disk takes nothing, and where another process is writing it: {@link whenWritten} waits for that.
   */
  claim(name: string, bytes: number, key: number): Claim | null {
    if (bytes > this.maxBytes || performance.now() < this.#unusableUntil) return null;
    const claimed = this.#locked(() => {
      if (this.has(name) || this.#isClaimed(name)) return false;
      if (this.#used() + bytes > this.maxBytes && !this.#evict(bytes, key)) return false;
      this.#setUsed(this.#used() + bytes);
      this.#pieces.claim(name, bytes);
      return true;
    });
    return claimed === true ? { name, bytes } : null;
  }

  /** Writes a claimed piece; false where the disk is full or gone, and the place is given back. */
  async write({ name, bytes }: Claim, content: Uint8Array, key: number): Promise<boolean> {
    const kept = keptKey(key);
    const part = this.#pieces.partOf(name);
    try {
      const handle = await open(part, 'w', 0o600);
      try {
        for (let done = 0; done < content.length; ) {
          done += (await handle.write(content, done, content.length - done, done)).bytesWritten;
        }
        await handle.utimes(new Date(), kept);
      } finally {
        await handle.close();
      }
      // Who counts what is there sees the claim or the piece, never neither.
      underLock(this.#at(LOCK), () => {
        renameSync(part, this.pathOf(name));
        this.#pieces.unclaim(name);
      });
      this.#known.set(name, kept);
      return true;
    } catch {
      this.#unusableUntil = performance.now() + UNUSABLE_MS;
      this.giveBack({ name, bytes });
      return false;
    }
  }

  /** The piece is not going to be written. */
  giveBack({ name, bytes }: Claim): void {
    const undo = (): void => {
      rmSync(this.#pieces.partOf(name), { force: true });
      this.#pieces.unclaim(name);
    };
    const done = this.#locked(() => {
      undo();
      this.#setUsed(this.#used() - bytes);
      return true;
    });
    if (done) return;
    try {
      // What is counted is too much then, until the folder is opened the next time; but nobody waits for the piece.
      undo();
    } catch {
      // The folder is gone, and the claim with it.
    }
  }

  /** Whether another process is writing the piece. */
  isBeingWritten(name: string): boolean {
    return this.#pieces.ownerOf(name)?.isGone === false;
  }

  /** Resolves when nobody writes the piece any more. */
  async whenWritten(name: string): Promise<void> {
    while (this.isBeingWritten(name)) await sleep(POLL_MS);
  }

  /** Does something under the lock. Undefined where the folder cannot be changed: nothing is kept in it for a while then. */
  #locked<T>(work: () => T): T | undefined {
    try {
      return underLock(this.#at(LOCK), work);
    } catch {
      this.#unusableUntil = performance.now() + UNUSABLE_MS;
      return undefined;
    }
  }

  /** Under the lock. Makes room where enough is needed later than `key`. */
  #evict(bytes: number, key: number): boolean {
    this.#look();
    for (;;) {
      if (this.#used() + bytes <= this.maxBytes) return true;
      let victim: string | null = null;
      let last = key;
      for (const [name, known] of this.#known) {
        if (known > last) {
          victim = name;
          last = known;
        }
      }
      if (victim === null) return false;
      const found = this.#pieces.keyOf(victim);
      // Others may have evicted it, or used it since.
      if (found === null) this.#known.delete(victim);
      else if (found === last) this.#remove(victim);
      else this.#known.set(victim, found);
    }
  }

  /** What others did. */
  #look(): void {
    if (performance.now() - this.#lookedMs < LOOK_MS && this.#lookedMs > 0) return;
    this.#lookedMs = performance.now();
    this.#known.clear();
    for (const name of this.#pieces.names()) {
      const key = this.#pieces.keyOf(name);
      if (key !== null) this.#known.set(name, key);
    }
  }

  /** Under the lock: first the file, so that what is counted is never less than what is there. */
  #remove(name: string): void {
    const bytes = this.#pieces.sizeOf(name);
    this.#known.delete(name);
    if (!this.has(name)) return;
    // Its writer may have been killed before it took its claim away, which would be counted off once more.
    this.#pieces.unclaim(name);
    this.#pieces.remove(name);
    this.#setUsed(this.#used() - bytes);
  }

  /** Under the lock. The claim of a dead process is taken away. */
  #isClaimed(name: string): boolean {
    const owner = this.#pieces.ownerOf(name);
    if (owner === null) return false;
    if (!owner.isGone) return true;
    this.#pieces.clearClaim(name, owner);
    // It may have been renamed, and its claim have stayed.
    if (!this.has(name)) this.#setUsed(this.#used() - owner.bytes);
    return false;
  }

  /** Under the lock: what dead processes left, and what is really there. */
  #clearAway(): void {
    const pieces = this.#pieces;
    pieces.removeLeftParts();
    let bytes = 0;
    for (const name of pieces.claimed()) {
      const owner = pieces.ownerOf(name);
      if (owner === null) continue;
      if (owner.isGone) pieces.clearClaim(name, owner);
      else if (!pieces.has(name)) bytes += owner.bytes;
    }
    for (const name of pieces.names()) bytes += pieces.sizeOf(name);
    this.#setUsed(bytes);
  }

  #used(): number {
    try {
      return Number(readFileSync(this.#at(USED), 'utf8')) || 0;
    } catch {
      return 0;
    }
  }

  #setUsed(bytes: number): void {
    const part = this.#at(`${USED}.part`);
    writeFileSync(part, String(Math.max(0, bytes)));
    renameSync(part, this.#at(USED));
  }

  #at(...names: string[]): string {
    return path.join(this.folder, ...names);
  }
}

function notOurs(folder: string): OptionError {
  return new OptionError(
    { path: folder },
    `${folder} is not a cache of shardtool, and has other things in it: name an empty folder for the cache.`,
  );
}

function unusable(folder: string, cause: unknown): FileError {
  return new FileError(
    { path: folder },
    `${folder} cannot be used as a cache (${(cause as Error).message}): name another folder, or leave the cache out.`,
    { cause },
  );
}
