import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileError, OptionError } from '../errors.js';
import { isAlive, underLock } from './folder-lock.js';

/** Says whose a folder is: only in one that has it anything is removed. */
const MARK = 'shardtool-cache';
const LOCK = 'lock';
/** Bytes that are there or promised, as text. It is never less than what lies in the folder. */
const USED = 'used';
const PIECES = 'pieces';
const CLAIM = '.claim';
/** Of the free disk, where no size is given. */
const DEFAULT_SHARE = 0.5;
/** What other processes put there is looked for so often. */
const LOOK_MS = 10_000;
const POLL_MS = 10;
/** A key that stands for no use within sight; a time that every file system keeps. */
const NEVER = 15_000_000_000;

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
 */
export class CacheFolder {
  readonly folder: string;
  readonly maxBytes: number;
  /** What is known to be there: key and bytes by name. Others may have changed it. */
  readonly #known = new Map<string, { key: number; readonly bytes: number }>();
  #lookedMs = 0;

  /** Makes the folder, for its owner alone. Throws {@link OptionError} for one with other things in it, {@link FileError}. */
  constructor(folder: string, maxBytes?: number) {
    this.folder = path.resolve(folder);
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      if (!existsSync(this.#at(MARK))) {
        // The mark is made first: where another process makes the folder just now, it is there as soon as anything is.
        if (readdirSync(this.folder).length > 0 && !existsSync(this.#at(MARK))) throw notOurs(this.folder);
        writeFileSync(this.#at(MARK), 'Pieces of datasets that were fetched. "shardtool cache clear" removes them.\n');
      }
      mkdirSync(this.#at(PIECES), { recursive: true, mode: 0o700 });
      underLock(this.#at(LOCK), () => this.#clearAway());
      const { bavail, bsize } = statfsSync(this.folder);
      this.maxBytes = maxBytes ?? Math.floor((bavail * bsize + this.#used()) * DEFAULT_SHARE);
    } catch (cause) {
      if (cause instanceof OptionError) throw cause;
      throw unusable(this.folder, cause);
    }
  }

  /** What a folder holds that is a cache. Throws {@link OptionError} where it is none. */
  static contents(folder: string): CacheContents {
    if (!existsSync(path.join(folder, MARK))) throw notOurs(folder);
    const pieces = piecesIn(path.join(folder, PIECES)).filter((name) => !name.endsWith(CLAIM) && !isPart(name));
    const bytes = pieces.reduce((sum, name) => sum + sizeOf(path.join(folder, PIECES, name)), 0);
    return { pieces: pieces.length, bytes };
  }

  /** Removes all pieces but those that are being written. */
  static clear(folder: string): CacheContents {
    const before = CacheFolder.contents(folder);
    const cache = new CacheFolder(folder);
    underLock(cache.#at(LOCK), () => {
      for (const name of piecesIn(cache.#at(PIECES))) {
        if (!name.endsWith(CLAIM) && !isPart(name)) cache.#remove(name);
      }
    });
    return before;
  }

  /** The file of a piece. */
  pathOf(name: string): string {
    return this.#at(PIECES, name);
  }

  has(name: string): boolean {
    return existsSync(this.pathOf(name));
  }

  /** The piece was used, and will be again when its key says. */
  use(name: string, key: number): void {
    const kept = Math.min(NEVER, key);
    const known = this.#known.get(name);
    if (known?.key === kept) return;
    try {
      utimesSync(this.pathOf(name), new Date(), kept);
      if (known !== undefined) known.key = kept;
    } catch {
      // It was evicted meanwhile.
      this.#known.delete(name);
    }
  }

  /** The piece is not what it should be. */
  drop(name: string): void {
    underLock(this.#at(LOCK), () => this.#remove(name));
  }

  /**
   * Promises the place of a piece, evicting those that are needed later than `key` says. Null where that would not give
   * enough, and where another process is writing it: {@link whenWritten} waits for that.
   */
  claim(name: string, bytes: number, key: number): Claim | null {
    if (bytes > this.maxBytes) return null;
    return underLock(this.#at(LOCK), () => {
      if (this.has(name) || this.#isClaimed(name)) return null;
      if (this.#used() + bytes > this.maxBytes && !this.#evict(bytes, key)) return null;
      this.#setUsed(this.#used() + bytes);
      symlinkSync(`${process.pid}-${bytes}`, this.pathOf(name) + CLAIM);
      return { name, bytes };
    });
  }

  /** Writes a claimed piece; false where the disk is full or gone, and the place is given back. */
  async write({ name, bytes }: Claim, content: Uint8Array, key: number): Promise<boolean> {
    const kept = Math.min(NEVER, key);
    const part = `${this.pathOf(name)}.${process.pid}.part`;
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
        rmSync(this.pathOf(name) + CLAIM, { force: true });
      });
      this.#known.set(name, { key: kept, bytes });
      return true;
    } catch {
      this.giveBack({ name, bytes });
      return false;
    }
  }

  /** The piece is not going to be written. */
  giveBack({ name, bytes }: Claim): void {
    underLock(this.#at(LOCK), () => {
      rmSync(`${this.pathOf(name)}.${process.pid}.part`, { force: true });
      rmSync(this.pathOf(name) + CLAIM, { force: true });
      this.#setUsed(this.#used() - bytes);
    });
  }

  /** Whether another process is writing the piece. */
  isBeingWritten(name: string): boolean {
    const owner = claimOf(this.pathOf(name) + CLAIM);
    return owner !== null && isAlive(owner.pid);
  }

  /** Resolves when nobody writes the piece any more. */
  async whenWritten(name: string): Promise<void> {
    while (this.isBeingWritten(name)) await sleep(POLL_MS);
  }

  /** Under the lock. Makes room where enough is needed later than `key`. */
  #evict(bytes: number, key: number): boolean {
    this.#look();
    for (;;) {
      if (this.#used() + bytes <= this.maxBytes) return true;
      let victim: string | null = null;
      let last = key;
      for (const [name, known] of this.#known) {
        if (known.key > last) {
          victim = name;
          last = known.key;
        }
      }
      if (victim === null) return false;
      const found = keyOf(this.pathOf(victim));
      // Others may have evicted it, or used it since.
      if (found === null) this.#known.delete(victim);
      else if (found === last) this.#remove(victim);
      else this.#known.get(victim)!.key = found;
    }
  }

  /** What others did. */
  #look(): void {
    if (performance.now() - this.#lookedMs < LOOK_MS && this.#lookedMs > 0) return;
    this.#lookedMs = performance.now();
    this.#known.clear();
    for (const name of piecesIn(this.#at(PIECES))) {
      const key = name.endsWith(CLAIM) || isPart(name) ? null : keyOf(this.pathOf(name));
      if (key !== null) this.#known.set(name, { key, bytes: sizeOf(this.pathOf(name)) });
    }
  }

  /** Under the lock: first the file, so that what is counted is never less than what is there. */
  #remove(name: string): void {
    const bytes = sizeOf(this.pathOf(name));
    this.#known.delete(name);
    if (!this.has(name)) return;
    // Its writer may have been killed before it took its claim away, which would be counted off once more.
    rmSync(this.pathOf(name) + CLAIM, { force: true });
    rmSync(this.pathOf(name), { force: true });
    this.#setUsed(this.#used() - bytes);
  }

  /** Under the lock. The claim of a dead process is taken away, with what it had written. */
  #isClaimed(name: string): boolean {
    const claim = this.pathOf(name) + CLAIM;
    const owner = claimOf(claim);
    if (owner === null) return false;
    if (isAlive(owner.pid)) return true;
    rmSync(`${this.pathOf(name)}.${owner.pid}.part`, { force: true });
    rmSync(claim, { force: true });
    // It may have been renamed, and its claim have stayed.
    if (!this.has(name)) this.#setUsed(this.#used() - owner.bytes);
    return false;
  }

  /** Under the lock: what dead processes left, and what is really there. */
  #clearAway(): void {
    let bytes = 0;
    for (const name of piecesIn(this.#at(PIECES))) {
      const at = this.pathOf(name);
      if (name.endsWith(CLAIM)) {
        const owner = claimOf(at);
        const piece = name.slice(0, -CLAIM.length);
        if (owner !== null && isAlive(owner.pid)) bytes += this.has(piece) ? 0 : owner.bytes;
        else rmSync(at, { force: true });
      } else if (isPart(name)) {
        if (!isAlive(Number(/\.(\d+)\.part$/.exec(name)![1]))) rmSync(at, { force: true });
      } else bytes += sizeOf(at);
    }
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

function piecesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isPart(name: string): boolean {
  return name.endsWith('.part');
}

function claimOf(claim: string): { readonly pid: number; readonly bytes: number } | null {
  try {
    if (!lstatSync(claim).isSymbolicLink()) return null;
    const [pid, bytes] = readlinkSync(claim).split('-').map(Number) as [number, number];
    return { pid, bytes };
  } catch {
    return null;
  }
}

function keyOf(file: string): number | null {
  try {
    return Math.round(statSync(file).mtimeMs / 1000);
  } catch {
    return null;
  }
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
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
