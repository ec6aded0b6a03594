import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileError, makeFolder, OptionError, removeAbandoned, underLock } from '@shardtool/base';
import { KeptKeys } from './kept-keys.js';
import { keptKey, PieceFiles } from './piece-files.js';
import { fileBytes, readPiece, sumsOf } from './piece-sums.js';

/** Says whose a folder is: only in one that has it anything is removed. */
const MARK = 'shardtool-cache';
/** Pieces of a cache with another text are of another version, and are removed. */
const MARK_TEXT = 'Pieces of datasets that were fetched, version 2. "shardtool cache clear" removes them.\n';
const LOCK = 'lock';
/** Bytes that are there or promised, as text. It is never less than what lies in the folder. */
const USED = 'used';
/** Digits of that text: as it is always the same length, it is replaced by one write, whole or not at all. */
const USED_DIGITS = 16;
const PIECES = 'pieces';
/** Of the free disk, where no size is given. */
const DEFAULT_SHARE = 0.5;
/** A lock or a claim of another process is waited for at most this long. Then its pieces are read past the cache. */
const PATIENCE_MS = 2000;
const FIRST_POLL_MS = 5;
const LONGEST_POLL_MS = 50;
/** A process that was waited for in vain is not waited for again for this long. */
const SLOW_MS = 30_000;
/** After the disk could not be written, nothing is kept for so long. */
const UNUSABLE_MS = 30_000;

/** A piece whose place is promised: it is to be written, or given back. */
export interface Claim {
  readonly name: string;
  /** Of its content. */
  readonly bytes: number;
  /** Tells it from a claim by another process. */
  readonly token: string;
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
 * Every piece is checked by checksums of its own as it is read. Once open, a folder that fails keeps nothing, and whoever reads
 * through it fetches; so does whoever would have to wait for a slow or stopped process.
 */
export class CacheFolder {
  readonly folder: string;
  #maxBytes = 0;
  readonly #pieces: PieceFiles;
  readonly #keys: KeptKeys;
  #unusableUntil = 0;
  /** Until when a process that is slow is not waited for, by the part of its tokens that names it. */
  readonly #slow = new Map<string, number>();

  private constructor(folder: string) {
    this.folder = path.resolve(folder);
    this.#pieces = new PieceFiles(this.#at(PIECES));
    this.#keys = new KeptKeys(this.#pieces);
  }

  /** Makes the folder, for its owner alone. Throws {@link OptionError} for one with other things in it, {@link FileError}. */
  static async open(folder: string, maxBytes?: number): Promise<CacheFolder> {
    const cache = new CacheFolder(folder);
    try {
      await cache.#open(maxBytes);
    } catch (cause) {
      if (cause instanceof OptionError) throw cause;
      throw unusable(cache.folder, cause);
    }
    return cache;
  }

  async #open(maxBytes: number | undefined): Promise<void> {
    makeFolder(this.folder, 0o700);
    if (!existsSync(this.#at(MARK))) {
      // The mark is made first: where another process makes the folder just now, it is there as soon as anything is.
      if (readdirSync(this.folder).length > 0 && !existsSync(this.#at(MARK))) throw notOurs(this.folder);
      writeFileSync(this.#at(MARK), MARK_TEXT);
    }
    makeFolder(this.#at(PIECES), 0o700);
    await this.#begin();
    const { bavail, bsize } = statfsSync(this.folder);
    this.#maxBytes = maxBytes ?? Math.floor((bavail * bsize + this.#used()) * DEFAULT_SHARE);
  }

  /** On a full disk, or while a process that holds the lock is stopped, what is kept already is used. */
  async #begin(): Promise<void> {
    let isDone = false;
    try {
      isDone = (await underLock(this.#at(LOCK), PATIENCE_MS, () => this.#clearAway())) !== undefined;
    } catch (error) {
      if (!/^(ENOSPC|EDQUOT)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
    if (!isDone) this.#unusableUntil = performance.now() + UNUSABLE_MS;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** What a folder holds that is a cache. Throws {@link OptionError} where it is none. */
  static contents(folder: string): CacheContents {
    if (!existsSync(folder))
      throw new OptionError({ path: folder }, `There is no folder ${folder}; name that of a cache.`);
    if (!existsSync(path.join(folder, MARK)) && readdirSync(folder).length > 0) throw notOurs(folder);
    const pieces = new PieceFiles(path.join(folder, PIECES));
    const names = pieces.names();
    return { pieces: names.length, bytes: names.reduce((sum, name) => sum + pieces.sizeOf(name), 0) };
  }

  /** Removes all pieces but those that are being written. */
  static async clear(folder: string): Promise<CacheContents> {
    const before = CacheFolder.contents(folder);
    if (before.pieces === 0) return before;
    const cache = await CacheFolder.open(folder);
    const cleared = await underLock(cache.#at(LOCK), PATIENCE_MS, () => {
      for (const name of cache.#pieces.names()) cache.#remove(name);
    });
    if (cleared === undefined) throw busy(folder);
    return before;
  }

  has(name: string): boolean {
    return this.#pieces.has(name);
  }

  /** The piece was used, and will be again when its key says. */
  use(name: string, key: number): void {
    this.#keys.use(name, key);
  }

  /**
   * Fills `target` from `offset` of a piece on, whose content has `bytes` bytes. False if it is not there, or damaged: it is
   * dropped then, and `target` is to be filled anew.
   */
  async read(name: string, bytes: number, offset: number, target: Uint8Array): Promise<boolean> {
    const ended = await readPiece(this.#pieces.pathOf(name), bytes, offset, target);
    if (ended === 'damaged') await this.drop(name);
    return ended === 'read';
  }

  /** The piece is not what it should be. */
  async drop(name: string): Promise<void> {
    const isDone = await this.#locked(() => {
      this.#remove(name);
      return true;
    });
    if (isDone) return;
    try {
      // Then too much is counted, until the folder is opened the next time.
      this.#pieces.remove(name);
    } catch {
      // It is found damaged again, and read past the cache.
    }
  }

  /**
   * Promises the place of a piece, evicting those that are needed later than `key` says. Null where that would not give
   * enough, where the disk takes nothing, and where another process is writing it: {@link whenWritten} waits for that.
   */
  async claim(name: string, bytes: number, key: number): Promise<Claim | null> {
    const stored = fileBytes(bytes);
    if (stored > this.maxBytes || performance.now() < this.#unusableUntil) return null;
    const token = await this.#locked(() => {
      if (this.has(name) || this.#isClaimed(name)) return null;
      if (!this.#evict(stored, key)) return null;
      this.#setUsed(this.#used() + stored);
      try {
        return this.#pieces.claim(name, stored);
      } catch (error) {
        this.#setUsed(this.#used() - stored);
        throw error;
      }
    });
    return token === null || token === undefined ? null : { name, bytes, token };
  }

  /** Writes a claimed piece. False if the disk is full or gone, or another process has the claim by now; the place is given back. */
  async write(claim: Claim, content: Uint8Array, key: number): Promise<boolean> {
    const { name, token } = claim;
    const part = this.#pieces.partOf(name, token);
    try {
      const handle = await open(part, 'wx', 0o600);
      try {
        for (const bytes of [content, sumsOf(content)]) await handle.writeFile(bytes);
        await handle.utimes(new Date(), keptKey(key));
      } finally {
        await handle.close();
      }
      // Who counts what is there sees the claim or the piece, never neither.
      const placed = await underLock(this.#at(LOCK), PATIENCE_MS, () => {
        if (!this.#isMine(claim)) return false;
        renameSync(part, this.#pieces.pathOf(name));
        this.#pieces.unclaim(name);
        return true;
      });
      if (placed?.value === true) {
        this.#keys.add(name, key);
        return true;
      }
      if (placed === undefined) this.#unusableUntil = performance.now() + UNUSABLE_MS;
    } catch {
      this.#unusableUntil = performance.now() + UNUSABLE_MS;
    }
    await this.giveBack(claim);
    return false;
  }

  /** The piece is not going to be written. */
  async giveBack(claim: Claim): Promise<void> {
    const { name, bytes, token } = claim;
    try {
      // First, and without the lock, which takes room on a disk that is full.
      rmSync(this.#pieces.partOf(name, token), { force: true });
    } catch {
      // Whoever opens the folder next removes it.
    }
    const undo = (): boolean => {
      const isMine = this.#isMine(claim);
      if (isMine) this.#pieces.unclaim(name);
      return isMine;
    };
    const done = await this.#locked(() => {
      if (undo()) this.#setUsed(this.#used() - fileBytes(bytes));
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

  /** Another process may have taken this one for dead, and claimed the piece itself. */
  #isMine({ name, token }: Claim): boolean {
    return this.#pieces.ownerOf(name)?.holder?.token === token;
  }

  /** Whether a process is writing the piece. */
  isBeingWritten(name: string): boolean {
    return this.#pieces.ownerOf(name)?.isGone === false;
  }

  /** Resolves when no process writes the piece any more; false if that takes long: the piece is to be read past the cache then. */
  async whenWritten(name: string): Promise<boolean> {
    const end = performance.now() + PATIENCE_MS;
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LONGEST_POLL_MS, pollMs * 2)) {
      const owner = this.#pieces.ownerOf(name);
      if (owner === null || owner.isGone) return true;
      const writer = owner.holder?.token.replace(/-[^-]*$/, '') ?? '';
      if (owner.state === 'stopped' || performance.now() < (this.#slow.get(writer) ?? 0)) return false;
      if (performance.now() > end) {
        this.#slow.set(writer, performance.now() + SLOW_MS);
        return false;
      }
      await sleep(pollMs);
    }
  }

  /** Does something under the lock. Undefined if the folder cannot be changed: nothing is kept in it for a while then. */
  async #locked<T>(work: () => T): Promise<T | undefined> {
    const patienceMs = performance.now() < this.#unusableUntil ? 0 : PATIENCE_MS;
    const done = await underLock(this.#at(LOCK), patienceMs, work).catch(() => undefined);
    if (done === undefined) this.#unusableUntil = performance.now() + UNUSABLE_MS;
    return done?.value;
  }

  /** Under the lock. Makes room, if there is enough that is needed later than `key`. */
  #evict(bytes: number, key: number): boolean {
    while (this.#used() + bytes > this.maxBytes) {
      const victim = this.#keys.lastAfter(key);
      if (victim === null) return false;
      this.#remove(victim);
    }
    return true;
  }

  /** Under the lock: first the file, so that what is counted is never less than what is there. */
  #remove(name: string): void {
    const bytes = this.#pieces.sizeOf(name);
    this.#keys.forget(name);
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

  /** Under the lock: what dead processes and other versions left, and what is really there. */
  #clearAway(): void {
    const pieces = this.#pieces;
    if (readFileSync(this.#at(MARK), 'utf8') !== MARK_TEXT) {
      for (const name of pieces.names()) pieces.remove(name);
      writeFileSync(this.#at(MARK), MARK_TEXT);
    }
    removeAbandoned(this.folder);
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
    const fd = openSync(this.#at(USED), constants.O_WRONLY | constants.O_CREAT, 0o600);
    try {
      writeSync(fd, String(Math.max(0, bytes)).padStart(USED_DIGITS, '0'), 0);
    } finally {
      closeSync(fd);
    }
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

function busy(folder: string): FileError {
  const message = `${folder} cannot be emptied: another process has held its lock for seconds. Try again, or end that process if it is stopped.`;
  return new FileError({ path: folder }, message);
}

function unusable(folder: string, cause: unknown): FileError {
  return new FileError(
    { path: folder },
    `${folder} cannot be used as a cache (${(cause as Error).message}): name another folder, or leave the cache out.`,
    { cause },
  );
}
