import { lstat, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { asFileError, EntryNameError, FileError, makeFolder, systemCodeOf } from '@shardtool/base';
import { whyUnsafe } from '@shardtool/format';

/** The sample that a file comes from, for messages. */
interface Origin {
  readonly shard: string;
  readonly key: string;
}

/** A folder that files are written into by names from a shard. Nothing is ever written outside of it, or twice. */
export class UnpackFolder {
  readonly #root: string;
  readonly #made = new Set<string>();

  constructor(root: string) {
    this.#root = path.resolve(root);
  }

  /**
   * Writes a new file and the folders above it. Throws {@link EntryNameError} for a name that would lead outside, and
   * {@link FileError}, also if the file exists.
   */
  async write(name: string, bytes: Uint8Array, { shard, key }: Origin): Promise<void> {
    const reason = whyUnsafe(name);
    if (reason !== null) {
      const message =
        `${shard}: sample ${JSON.stringify(key)} has a name that ${reason} (${JSON.stringify(name)}), so unpacking ends ` +
        'here; pack it under another name.';
      throw new EntryNameError({ shard, key, path: name }, message);
    }
    const file = path.join(this.#root, name);
    if (Buffer.byteLength(name) > ANY_NAME) await refuseLongName(file, name, { shard, key });
    try {
      await this.#makeFolder(path.dirname(file));
      // "wx" writes neither over a file nor through a link.
      await writeFile(file, bytes, { flag: 'wx' });
    } catch (cause) {
      const code = systemCodeOf(cause);
      const isFull = code === 'ENOSPC' || code === 'EDQUOT';
      const isTaken = code === 'EEXIST';
      if (isFull) {
        // A partly written file would look complete, and block the next run.
        await rm(file, { force: true }).catch(() => undefined);
        const message = `${this.#root} is on a disk that is full (${code}): make room, or unpack to another disk; the files before ${name} are complete.`;
        throw new FileError({ shard, key, path: file }, message, { cause });
      }
      const failed = asFileError(cause);
      if (!isTaken && failed instanceof FileError)
        throw new FileError({ shard, key, path: file }, failed.message, { cause });
      const why = isTaken ? 'something is there already' : (cause as Error).message;
      const message = `${file} cannot be written (${why}); unpack into an empty folder.`;
      throw new FileError({ shard, key, path: file }, message, { cause });
    }
  }

  /** Makes folders one by one, because `recursive` would follow a link in the path. */
  async #makeFolder(folder: string): Promise<void> {
    const missing: string[] = [];
    for (let above = folder; !this.#made.has(above); above = path.dirname(above)) {
      missing.push(above);
      if (above === this.#root) break;
    }
    for (const one of missing.reverse()) {
      if (one === this.#root) makeFolder(one);
      else await makeOne(one);
      this.#made.add(one);
    }
  }
}

async function makeOne(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (!(await lstat(folder)).isDirectory()) throw new Error(`${folder} is a file or a link`);
  }
}

/** Every file system allows names of this many bytes. */
const ANY_NAME = 200;
/** Number of characters of a long name that messages show. */
const SHOWN_CHARACTERS = 80;

/** Throws {@link FileError}, before any folder of it is made, for a path that the system finds too long. */
async function refuseLongName(file: string, name: string, origin: Origin): Promise<void> {
  try {
    await lstat(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENAMETOOLONG') return;
    const bytes = Buffer.byteLength(name);
    const message =
      `${origin.shard}: a sample would be the file ${JSON.stringify(`${name.slice(0, SHOWN_CHARACTERS)}...`)}, whose name of ${bytes} bytes ` +
      'is too long for this file system; exclude it with --exclude-keys, or write a tar ("unpack ... -").';
    throw new FileError({ ...origin, path: file }, message, { cause });
  }
}
