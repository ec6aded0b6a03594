import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { lastAtMost, makeFolder, Recent, removeAbandoned, totalOf } from '@shardtool/base';
import { KeyHashes, type ShardKeys } from './key-hashes.js';
import { KeyList, KeyListError, type ListedShard, writeKeyList } from './key-list-file.js';
import type { Keys } from './unknown-key.js';

/** Number of samples up to which shards without a list are read by each look-up. It takes about two seconds. */
const UNLISTED_SAMPLES = 1_000_000;
/** Maximum number of keys of a list, which is made in 8 bytes of memory per key. */
const LIST_SAMPLES = 2 ** 25;
/** Lists of less than half of that size are joined if there are more of them than this. */
const SMALL_LISTS = 8;
/** Number of shards whose keys are read at a time. */
const KEY_READS = 8;
/** Number of shards whose keys stay in memory. */
const KEPT_SHARDS = 64;
const EXTENSION = '.keys';

/** Limits of a key index. Tests make them small. */
interface KeyIndexLimits {
  readonly unlistedSamples: number;
  readonly listSamples: number;
  readonly smallLists: number;
}

/** Where the keys of a dataset are. */
interface Places {
  /** Per list: the number in the dataset of each of its shards; -1 if the dataset does not have it. */
  readonly lists: readonly { readonly list: KeyList; readonly numbers: readonly number[] }[];
  /** Numbers of the shards that are in no list, in order. */
  readonly unlisted: readonly number[];
}

/**
 * Files in a folder that tell which shards of a dataset may have a key ({@link KeyList}), so that a look-up reads the
 * keys of about one shard. They are made when they are first needed. After a change of the dataset, the lists of its
 * other shards remain valid; new shards are read by each look-up, and get a separate list when they have more than
 * a million samples. Other processes and other versions of the dataset may use the same folder at the same time.
 */
export class KeyIndex {
  readonly #folder: string;
  readonly #shards: readonly ListedShard[];
  readonly #limits: KeyIndexLimits;
  #places: Promise<Places> | null = null;
  /** Paths of lists that were found missing or damaged. */
  readonly #unusable = new Set<string>();
  /** Paths of lists that this object wrote. On a disk that damages files, a list is not made again and again. */
  readonly #written = new Set<string>();

  /** `shards`: all shards of the dataset with all of their samples, also if a view hides some. */
  constructor(
    folder: string,
    shards: readonly ListedShard[],
    limits: KeyIndexLimits = {
      unlistedSamples: UNLISTED_SAMPLES,
      listSamples: LIST_SAMPLES,
      smallLists: SMALL_LISTS,
    },
  ) {
    this.#folder = folder;
    this.#shards = shards;
    this.#limits = limits;
  }

  /** Number of samples of the dataset. */
  get samples(): number {
    return samplesOf(this.#shards);
  }

  /**
   * Returns the numbers of the shards that may have this key according to the lists, and of those that are in no list,
   * both in order. The first call makes missing lists, if the folder can be written.
   */
  async shardsWith(key: string): Promise<{ readonly listed: readonly number[]; readonly unlisted: readonly number[] }> {
    for (;;) {
      this.#places ??= this.#open().catch((error: unknown) => {
        this.#places = null;
        throw error;
      });
      const { lists, unlisted } = await this.#places;
      try {
        const found = await Promise.all(
          lists.map(async ({ list, numbers }) => (await list.shardsWith(key)).map((number) => numbers[number] ?? -1)),
        );
        const listed = [...new Set(found.flat().filter((number) => number >= 0))].sort((a, b) => a - b);
        return { listed, unlisted };
      } catch (error) {
        if (!(error instanceof KeyListError)) throw error;
        // A damaged list is made again. One that cannot be opened may have been joined with others by another process.
        this.#unusable.add(error.path);
        if (error.cause === undefined) await rm(error.path, { force: true }).catch(() => undefined);
        this.#places = null;
      }
    }
  }

  async #open(): Promise<Places> {
    let lists = await this.#openLists();
    let unlisted = this.#without(lists);
    const { unlistedSamples, listSamples, smallLists } = this.#limits;
    if (samplesOf(unlisted) > unlistedSamples && (await isWritable(this.#folder))) {
      const small = lists.filter(({ samples }) => samples < listSamples / 2);
      const joined = small.length >= smallLists ? small : [];
      if (joined.length > 0) unlisted = this.#without(lists.filter((list) => !joined.includes(list)));
      if (await this.#write(unlisted)) {
        await Promise.all(joined.map(({ path: old }) => rm(old, { force: true })));
        lists = await this.#openLists();
      }
      unlisted = this.#without(lists);
    }
    const numbers = new Map(this.#shards.map(({ name }, number) => [name, number]));
    return {
      lists: lists.map((list) => ({ list, numbers: list.shards.map((name) => numbers.get(name) ?? -1) })),
      unlisted: unlisted.map(({ name }) => numbers.get(name)!),
    };
  }

  /** Opens all lists of the folder that have a shard of the dataset. */
  async #openLists(): Promise<KeyList[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const files = names.filter((name) => name.endsWith(EXTENSION)).map((name) => path.join(this.#folder, name));
    const own = new Set(this.#shards.map(({ name }) => name));
    const lists: KeyList[] = [];
    for (const file of files.filter((name) => !this.#unusable.has(name)).sort()) {
      // A file that cannot be opened, or that another process has removed, counts as missing.
      const list = await KeyList.open(file).catch(() => null);
      if (list?.shards.some((name) => own.has(name))) lists.push(list);
    }
    return lists;
  }

  #without(lists: readonly KeyList[]): readonly ListedShard[] {
    const listed = new Set(lists.flatMap(({ shards }) => shards));
    return this.#shards.filter(({ name }) => !listed.has(name));
  }

  /** Makes lists of these shards. Returns false if they cannot be written. */
  async #write(shards: readonly ListedShard[]): Promise<boolean> {
    for (let first = 0; first < shards.length; ) {
      let end = first + 1;
      for (let samples = shards[first]!.samples; end < shards.length; end++) {
        samples += shards[end]!.samples;
        if (samples > this.#limits.listSamples) break;
      }
      const some = shards.slice(first, end);
      const digest = createHash('sha256')
        .update(JSON.stringify(some.map(({ name }) => name)))
        .digest('hex');
      const file = path.join(this.#folder, `${digest.slice(0, 16)}${EXTENSION}`);
      if (this.#written.has(file) || !(await writeKeyList(file, some, KEY_READS))) return false;
      this.#written.add(file);
      this.#unusable.delete(file);
      first = end;
    }
    return true;
  }
}

/** Finds samples by key with a {@link KeyIndex}. */
export class IndexedKeys implements Keys {
  readonly #index: KeyIndex;
  readonly #shards: ShardKeys;
  readonly #keys: Recent<number, readonly string[]>;
  /** The shards that are in no list, and their keys. */
  #unlisted: { readonly numbers: readonly number[]; readonly firstSample: number[]; readonly keys: KeyHashes } | null =
    null;

  /** `shards`: the shards with the samples that are shown. They have the numbers that they have in the index. */
  constructor(index: KeyIndex, shards: ShardKeys) {
    this.#index = index;
    this.#shards = shards;
    this.#keys = new Recent(KEPT_SHARDS, (shard) => shards.keysOf(shard));
  }

  /** Returns the index of the first sample with this key, or -1. */
  async numberOf(key: string): Promise<number> {
    const { listed, unlisted } = await this.#index.shardsWith(key);
    const { firstSample } = this.#shards;
    let found = -1;
    for (const shard of listed) {
      const row = (await this.#keys.get(shard)).indexOf(key);
      if (row < 0) continue;
      found = firstSample[shard]! + row;
      break;
    }
    if (unlisted.length === 0 || (found >= 0 && found < firstSample[unlisted[0]!]!)) return found;
    const other = await this.#numberOfUnlisted(key, unlisted);
    return found < 0 || (other >= 0 && other < found) ? other : found;
  }

  async first(count: number): Promise<string[]> {
    const keys: string[] = [];
    for (let shard = 0; shard < this.#shards.firstSample.length - 1 && keys.length < count; shard++) {
      for (const key of (await this.#keys.get(shard)).slice(0, count - keys.length)) keys.push(key);
    }
    return keys;
  }

  async #numberOfUnlisted(key: string, numbers: readonly number[]): Promise<number> {
    if (this.#unlisted?.numbers !== numbers) this.#unlisted = unlistedKeys(this.#shards, numbers);
    const { firstSample, keys } = this.#unlisted;
    const index = await keys.numberOf(key);
    if (index < 0) return -1;
    const at = lastAtMost(firstSample, index, numbers.length);
    return this.#shards.firstSample[numbers[at]!]! + index - firstSample[at]!;
  }
}

/** The shards with these numbers, as a dataset. */
function unlistedKeys(shards: ShardKeys, numbers: readonly number[]) {
  const firstSample = [0];
  for (const shard of numbers) {
    firstSample.push(firstSample.at(-1)! + shards.firstSample[shard + 1]! - shards.firstSample[shard]!);
  }
  return { numbers, firstSample, keys: new KeyHashes({ firstSample, keysOf: (at) => shards.keysOf(numbers[at]!) }) };
}

function samplesOf(shards: readonly ListedShard[]): number {
  return totalOf(shards, ({ samples }) => samples);
}

async function isWritable(folder: string): Promise<boolean> {
  try {
    makeFolder(folder);
    removeAbandoned(folder);
    await access(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
