import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileError, makeFolder, OptionError, removeAbandoned, systemCodeOf, underLock } from '@shardtool/base';
import { KeptKeys } from './kept-keys.js';
import { keptKey, PieceFiles } from './piece-files.js';
import { fileBytes, readPiece, sumsOf } from './piece-sums.js';
import { UsedBytes } from './used-bytes.js';

/** File that marks a folder as a cache. Nothing is removed from a folder without it. */
const MARK = 'shardtool-cache';
/** Content of that file. If the file has another text, another version wrote the pieces, and they are removed. */
const MARK_TEXT = 'Pieces of datasets that were fetched, version 2. "shardtool cache clear" removes them.\n';
const LOCK = 'lock';
const USED = 'used';
const PIECES = 'pieces';
/** Share of the free disk space that the cache may use if no size is given. */
const DEFAULT_SHARE = 0.5;
/** Maximum time to wait for a lock or a claim of another process. Then its pieces are read without the cache. */
const PATIENCE_MS = 2000;
const FIRST_POLL_MS = 5;
const LONGEST_POLL_MS = 50;
/** After waiting for a process without success, this process does not wait for it again for this time. */
const SLOW_MS = 30_000;
/** After a failed write to the disk, nothing is cached for this time. */
const UNUSABLE_MS = 30_000;

/** A piece for which space is reserved. Its owner must write it or release the space. */
export interface Claim {
  readonly name: string;
  /** Length of its content. */
  readonly bytes: number;
  /** Distinguishes it from a claim of another process. */
  readonly token: string;
}

export interface CacheContents {
  readonly pieces: number;
  readonly bytes: number;
}

/**
 * A folder of pieces of bounded size, which all processes of a machine share.
 *
 * - A piece is written under a temporary name and renamed, so every piece under its own name is complete.
 * - The name of a piece identifies its bytes. Its modification time is its key: when it is needed next. The piece with
 *   the largest key is evicted first.
 * - Space is reserved and pieces are evicted under one lock. Reserved bytes count, so there are never more than
 *   `maxBytes`.
 * - Leftovers of a dead process are removed by the next process that opens the folder or wants the same piece.
 * - Every read of a piece is checked against its checksums.
 *
 * If a folder fails after it was opened, it causes no errors: it stores nothing more, and readers fetch their bytes.
 * They also fetch if they would have to wait for a slow or stopped process.
 */
export class CacheFolder {
  readonly folder: string;
  #maxBytes = 0;
  readonly #pieces: PieceFiles;
  readonly #keys: KeptKeys;
  readonly #used: UsedBytes;
  #unusableUntil = 0;
  /**
   * The time until which this process does not wait for a slow process, by the part of a token that identifies the slow
   * process.
   */
  readonly #slow = new Map<string, number>();

  private constructor(folder: string) {
    this.folder = path.resolve(folder);
    this.#pieces = new PieceFiles(this.#at(PIECES));
    this.#keys = new KeptKeys(this.#pieces);
    this.#used = new UsedBytes(this.#at(USED));
  }

  /**
   * Creates the folder if it does not exist, with access for its owner only. Throws {@link OptionError} if it has other files, and
   * {@link FileError} if it cannot be used.
   */
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
      // The mark is written first: if another process creates the folder now, the mark exists before any other file.
      if (readdirSync(this.folder).length > 0 && !existsSync(this.#at(MARK))) throw notOurs(this.folder);
      writeFileSync(this.#at(MARK), MARK_TEXT);
    }
    makeFolder(this.#at(PIECES), 0o700);
    await this.#begin();
    const { bavail, bsize } = statfsSync(this.folder);
    this.#maxBytes = maxBytes ?? Math.floor((bavail * bsize + this.#used.bytes) * DEFAULT_SHARE);
  }

  /** Removes leftovers. If the disk is full, or the process that holds the lock is stopped, only the present pieces are used. */
  async #begin(): Promise<void> {
    let isDone = false;
    try {
      isDone = (await underLock(this.#at(LOCK), PATIENCE_MS, () => this.#clearAway())) !== undefined;
    } catch (error) {
      if (!/^(ENOSPC|EDQUOT)$/.test(systemCodeOf(error) ?? '')) throw error;
    }
    if (!isDone) this.#unusableUntil = performance.now() + UNUSABLE_MS;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** Counts the pieces of a cache. Throws {@link OptionError} if the folder is not a cache. */
  static contents(folder: string): CacheContents {
    if (!existsSync(folder))
      throw new OptionError({ path: folder }, `No such folder: ${folder}. Give the folder of a cache.`);
    if (!existsSync(path.join(folder, MARK)) && readdirSync(folder).length > 0) throw notOurs(folder);
    const pieces = new PieceFiles(path.join(folder, PIECES));
    const names = pieces.names();
    return { pieces: names.length, bytes: names.reduce((sum, name) => sum + pieces.sizeOf(name), 0) };
  }

  /** Removes all pieces except those that are being written. */
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

  /** Records that the piece was used. `key` says when it is needed next. */
  use(name: string, key: number): void {
    this.#keys.use(name, key);
  }

  /**
   * Fills `target` with the bytes from `offset` of a piece whose content has `bytes` bytes. Returns false if the piece is missing or
   * damaged; the content of `target` is then undefined. A damaged piece is dropped.
   */
  async read(name: string, bytes: number, offset: number, target: Uint8Array): Promise<boolean> {
    const ended = await readPiece(this.#pieces.pathOf(name), bytes, offset, target);
    if (ended === 'damaged') await this.drop(name);
    return ended === 'read';
  }

  /** Removes a piece whose bytes are wrong. */
  async drop(name: string): Promise<void> {
    const isDone = await this.#locked(() => {
      this.#remove(name);
      return true;
    });
    if (isDone) return;
    try {
      // The count is then too large, until the folder is opened the next time.
      this.#pieces.remove(name);
    } catch {
      // The next read finds it damaged again, and fetches its bytes.
    }
  }

  /**
   * Reserves space for a piece, and evicts pieces that are needed later than `key` for it. Returns null if that does
   * not free enough, if the disk cannot be written, or if another process is writing the piece; {@link whenWritten}
   * waits for that process.
   */
  async claim(name: string, bytes: number, key: number): Promise<Claim | null> {
    const stored = fileBytes(bytes);
    if (stored > this.maxBytes || performance.now() < this.#unusableUntil) return null;
    const token = await this.#locked(() => {
      if (this.has(name) || this.#isClaimed(name)) return null;
      if (!this.#evict(stored, key)) return null;
      this.#used.add(stored);
      try {
        return this.#pieces.claim(name, stored);
      } catch (error) {
        this.#used.add(-stored);
        throw error;
      }
    });
    return token === null || token === undefined ? null : { name, bytes, token };
  }

  /**
   * Writes a claimed piece. Returns false if the disk cannot be written, or if another process has taken the claim; the
   * space is then released.
   */
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
      // The lock is held, so that a process that counts sees either the claim or the piece.
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

  /** Releases the space of a claim whose piece will not be written. */
  async giveBack(claim: Claim): Promise<void> {
    const { name, bytes, token } = claim;
    try {
      // This is done first, and without the lock: the lock needs space, which a full disk does not have.
      rmSync(this.#pieces.partOf(name, token), { force: true });
    } catch {
      // The next process that opens the folder removes it.
    }
    const undo = (): boolean => {
      const isMine = this.#isMine(claim);
      if (isMine) this.#pieces.unclaim(name);
      return isMine;
    };
    const done = await this.#locked(() => {
      if (undo()) this.#used.add(-fileBytes(bytes));
      return true;
    });
    if (done) return;
    try {
      // The count is then too large, until the folder is opened the next time. But no process waits for the piece.
      undo();
    } catch {
      // The folder was removed, and the claim with it.
    }
  }

  /** False if another process has taken this one for dead, and has claimed the piece itself. */
  #isMine({ name, token }: Claim): boolean {
    return this.#pieces.ownerOf(name)?.holder?.token === token;
  }

  /** True if a process is writing the piece. */
  isBeingWritten(name: string): boolean {
    return this.#pieces.ownerOf(name)?.isGone === false;
  }

  /** Waits until no process writes the piece. Resolves to false if that takes too long: read the piece without the cache then. */
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

  /**
   * Calls `work` under the lock. Returns undefined if the folder cannot be changed; then nothing is cached for a while.
   */
  async #locked<T>(work: () => T): Promise<T | undefined> {
    const patienceMs = performance.now() < this.#unusableUntil ? 0 : PATIENCE_MS;
    const done = await underLock(this.#at(LOCK), patienceMs, work).catch(() => undefined);
    if (done === undefined) this.#unusableUntil = performance.now() + UNUSABLE_MS;
    return done?.value;
  }

  /** Evicts pieces that are needed later than `key`. Returns false if that does not free enough. Call it under the lock. */
  #evict(bytes: number, key: number): boolean {
    while (this.#used.bytes + bytes > this.maxBytes) {
      const victim = this.#keys.lastAfter(key);
      if (victim === null) return false;
      this.#remove(victim);
    }
    return true;
  }

  /** Removes the file before it lowers the count: the count is never too small. Call it under the lock. */
  #remove(name: string): void {
    const bytes = this.#pieces.sizeOf(name);
    this.#keys.forget(name);
    if (!this.has(name)) return;
    // The writer may have been killed before it removed its claim. The bytes of the claim would then be subtracted as
    // well.
    this.#pieces.unclaim(name);
    this.#pieces.remove(name);
    this.#used.add(-bytes);
  }

  /** True if a live process has claimed the piece. Removes the claim of a dead process. Call it under the lock. */
  #isClaimed(name: string): boolean {
    const owner = this.#pieces.ownerOf(name);
    if (owner === null) return false;
    if (!owner.isGone) return true;
    this.#pieces.clearClaim(name, owner);
    // If the piece was already renamed, only its claim is left.
    if (!this.has(name)) this.#used.add(-owner.bytes);
    return false;
  }

  /** Removes leftovers of dead processes and other versions, and counts the bytes again. Call it under the lock. */
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
    this.#used.set(bytes);
  }

  #at(...names: string[]): string {
    return path.join(this.folder, ...names);
  }
}

function notOurs(folder: string): OptionError {
  return new OptionError(
    { path: folder },
    `${folder} is not a cache of shardtool, and it contains other files: give an empty folder for the cache.`,
  );
}

function busy(folder: string): FileError {
  const message = `${folder} cannot be emptied: another process has held its lock for seconds. Try again, or end that process if it is stopped.`;
  return new FileError({ path: folder }, message);
}

function unusable(folder: string, cause: unknown): FileError {
  return new FileError(
    { path: folder },
    `${folder} cannot be used as a cache (${(cause as Error).message}): give another folder, or remove the option for the cache.`,
    { cause },
  );
}
