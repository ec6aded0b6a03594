import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { FileError, layoutOf, MANIFEST_FILE, type ShardLayout, writeDurably } from '@shardtool/format';
import { z } from 'zod';
import { DiskFullError, OutputNotEmptyError } from './errors.js';
import { LOCK_FILE, lockFolder } from './lock.js';
import { QUARANTINE_FILE } from './quarantine.js';
import { type ShardPaths, shardPaths, TEMPORARY } from './shard-paths.js';

const NOTE_FILE = 'pack.json';

/**
 * What a pack writes first: which shards it is about to make. Beside dataset.json it says that a pack made them; without
 * dataset.json, that the pack did not end.
 */
const NOTE = z.object({
  version: z.literal(1),
  format: z.enum(['tar', 'lmdb', 'msgpack']),
  name: z.string(),
  shards: z.int().nonnegative(),
});

/** The folder that a pack writes into: made if need be, and locked until {@link OutputFolder.release}. */
export class OutputFolder {
  readonly path: string;
  readonly #made: boolean;
  readonly #unlock: () => void;

  /** Throws {@link OutputLockedError} where another pack is at work in it, {@link FileError} where it cannot be made. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#made = mkdirSync(path, { recursive: true }) !== undefined;
      this.#unlock = lockFolder(path);
    } catch (cause) {
      if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
      throw new FileError({ path }, `The output folder ${path} cannot be written to (${cause.message}).`, { cause });
    }
  }

  /** Throws {@link OutputNotEmptyError} where something is in the folder, unless it may be replaced. */
  checkEmpty(overwrite: boolean): void {
    const entries = readdirSync(this.path).filter((entry) => entry !== LOCK_FILE);
    if (entries.length > 0 && !overwrite) throw notEmpty(this.path, entries);
  }

  /** Removes what an earlier pack left here, and nothing else. */
  async clear(): Promise<void> {
    if (!existsSync(join(this.path, NOTE_FILE))) return;
    const note = readNote(join(this.path, NOTE_FILE));
    const layout = await layoutOf(note.format);
    // The manifest goes first and the note last, so that what is left in between is an unfinished pack and says so.
    for (const file of [MANIFEST_FILE, QUARANTINE_FILE]) this.#remove(file, `${file}${TEMPORARY}`);
    for (let shard = 0; shard < note.shards; shard++) {
      const paths = shardPaths(layout, note.name, shard);
      this.#remove(paths.file, paths.index);
      this.#removeTemporary(paths);
    }
    this.#remove(NOTE_FILE);
  }

  /** Notes down which shards are going to be made. Throws {@link OutputNotEmptyError} where one is in the way. */
  async announce(layout: ShardLayout, name: string, shards: number): Promise<void> {
    const taken = new Set(readdirSync(this.path));
    const wanted = [MANIFEST_FILE, QUARANTINE_FILE, NOTE_FILE];
    for (let shard = 0; shard < shards; shard++) {
      const { file, folder, index } = shardPaths(layout, name, shard);
      wanted.push(folder ?? file, index);
    }
    const inTheWay = wanted.filter((file) => taken.has(file));
    if (inTheWay.length > 0) throw notEmpty(this.path, inTheWay);
    const note: z.infer<typeof NOTE> = { version: 1, format: layout.name, name, shards };
    await writeDurably(join(this.path, NOTE_FILE), Buffer.from(`${JSON.stringify(note)}\n`));
  }

  /** Removes the temporary files that a worker leaves when it dies. */
  removeTemporaryFiles(layout: ShardLayout, name: string, shards: number): void {
    for (let shard = 0; shard < shards; shard++) this.#removeTemporary(shardPaths(layout, name, shard));
  }

  /** Throws {@link DiskFullError} where the disk has less room than `bytes`. */
  checkRoom(bytes: number): void {
    const { bavail, bsize, blocks } = statfsSync(this.path);
    const free = bavail * bsize;
    if (blocks === 0 || free >= bytes) return;
    const message = `The pack takes ${megabytes(bytes)} and ${this.path} has room for ${megabytes(free)}; make room, or pack to another disk.`;
    throw new DiskFullError({ path: this.path }, message);
  }

  /** Gives the lock back, and removes the folder again if it was made here and stayed empty. */
  release(): void {
    this.#unlock();
    if (this.#made && readdirSync(this.path).length === 0) rmdirSync(this.path);
  }

  #remove(...files: string[]): void {
    for (const file of files) rmSync(join(this.path, file), { force: true });
  }

  #removeTemporary({ file, folder, index }: ShardPaths): void {
    this.#remove(`${file}${TEMPORARY}`, `${index}${TEMPORARY}`);
    if (folder === null) return;
    try {
      rmdirSync(join(this.path, folder));
    } catch {
      // It is not there, or something else lies in it.
    }
  }
}

function readNote(path: string): z.infer<typeof NOTE> {
  try {
    return NOTE.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const message = `${path} does not say which shards lie beside it; empty the folder by hand, or pack to another one.`;
    throw new OutputNotEmptyError({ path }, message, { cause });
  }
}

function notEmpty(path: string, entries: readonly string[]): OutputNotEmptyError {
  const remedy = 'pack to another folder, or replace what an earlier pack left with "overwrite" (--overwrite)';
  let what = `holds ${entries[0]}${entries.length > 1 ? ` and ${entries.length - 1} more` : ''}`;
  if (entries.includes(MANIFEST_FILE)) what = 'holds a dataset already';
  else if (entries.includes(NOTE_FILE)) what = 'holds a pack that did not end';
  return new OutputNotEmptyError({ path }, `The output folder ${path} ${what}; ${remedy}.`);
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6).toLocaleString('en')} MB`;
}
