import { createHash, randomBytes } from 'node:crypto';
import { FileError, FileExistsError } from '@shardtool/base';
import { hasNoFolder } from '@shardtool/format';
import { readWholeOf, type Storage } from '@shardtool/storage';

/** Folder of a dataset with hashes of the keys of erased samples: later appends do not bring them back. */
const FOLDER = 'erased/';
/** A random number that all hashes of a dataset have in common, so that lists of keys cannot be looked up elsewhere. */
const SALT_FILE = `${FOLDER}salt`;
const DIGITS = 32;
const LIST = /^erased\/[0-9a-f]{16}\.txt$/;

/** Keys of erased samples, as hashes. */
export class Tombstones {
  readonly #salt: string;
  readonly #hashes: ReadonlySet<string>;

  constructor(salt: string, hashes: ReadonlySet<string>) {
    this.#salt = salt;
    this.#hashes = hashes;
  }

  /** Number of erased keys. */
  get size(): number {
    return this.#hashes.size;
  }

  has(key: string): boolean {
    return this.#hashes.size > 0 && this.#hashes.has(this.hashOf(key));
  }

  hashOf(key: string): string {
    return hashOf(this.#salt, key);
  }
}

/** Reads the hashes of all erased keys. */
export async function readTombstones(storage: Storage): Promise<Tombstones> {
  const hashes = new Set<string>();
  let salt = '';
  try {
    for await (const { name } of storage.list(FOLDER)) {
      // Other files are not shardtool's.
      if (name !== SALT_FILE && !LIST.test(name)) continue;
      const text = Buffer.from(await readWholeOf(storage, name)).toString();
      if (name === SALT_FILE) salt = text.trim();
      else for (const line of text.split('\n')) if (line.length === DIGITS) hashes.add(line);
    }
  } catch (error) {
    if (storage.localPath === undefined || !hasNoFolder(error)) throw error;
  }
  if (salt === '' && hashes.size > 0) {
    const path = `${storage.location}/${SALT_FILE}`;
    const message = `${path} is missing, so shardtool cannot tell which keys were erased: copy the whole folder "erased" of the dataset, or remove it to forget the keys.`;
    throw new FileError({ path }, message);
  }
  return new Tombstones(salt, hashes);
}

/** Adds the hashes of keys in a new file, so that two processes never replace each other's files. */
export async function addTombstones(storage: Storage, keys: readonly string[]): Promise<void> {
  try {
    await storage.put(SALT_FILE, Buffer.from(randomBytes(16).toString('hex')), { ifAbsent: true });
  } catch (error) {
    if (!(error instanceof FileExistsError)) throw error;
  }
  const salt = Buffer.from(await readWholeOf(storage, SALT_FILE))
    .toString()
    .trim();
  const lines = keys.map((key) => hashOf(salt, key)).sort();
  const text = `${lines.join('\n')}\n`;
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16);
  await storage.put(`${FOLDER}${name}.txt`, Buffer.from(text));
}

function hashOf(salt: string, key: string): string {
  return createHash('sha256').update(`${salt}\n${key}`).digest('hex').slice(0, DIGITS);
}
