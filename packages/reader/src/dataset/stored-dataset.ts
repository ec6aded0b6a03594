import {
  abortable,
  CALL_OPTIONS,
  checkCallOptions,
  OptionError,
  type OptionTable,
  ShardtoolError,
} from '@shardtool/base';
import type { LayoutName } from '@shardtool/format';
import { IndexedKeys, type KeyIndex } from './keys/key-index.js';
import { keysOfShards, WHOLE_KEYS } from './keys/keys-of-shards.js';
import { LookUp } from './keys/look-up.js';
import { hintOnUnknownKey, type Keys } from './keys/unknown-key.js';
import { checkSamplesOptions, readSamples, type Sample, type SamplesOptions } from './samples.js';
import { type ShardFile, sampleBytesOf } from './shards/shard-file.js';
import { ShardFiles } from './shards/shard-files.js';

/** There is no sample with the requested key or index. */
export class SampleNotFoundError extends ShardtoolError {
  static override readonly kind: string = 'SampleNotFoundError';
}

/** Options of {@link StoredDataset.get}. */
export interface GetOptions {
  /** Whether the crc32 of every field is checked. Throws if one is wrong. Default: true. */
  readonly checksum?: boolean | undefined;
  /** If it aborts, the call rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

const GET_OPTIONS = {
  checksum: { kind: 'switch', default: true, help: 'Whether checksums are checked' },
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/** The parts of a dataset, which {@link openDataset} determines. */
export interface DatasetParts {
  readonly location: string;
  readonly format: LayoutName;
  /** Equal for equal data. The state of a loader belongs to one identity. */
  readonly identity: string;
  readonly shards: readonly ShardFile[];
  readonly classes: readonly string[];
  /** Number of samples of each class, if known. */
  readonly classSamples: readonly number[];
  /** Names of all fields. */
  readonly fields: readonly string[];
  /** The largest number of objects of an image, if they were counted when the dataset was packed with annotations. */
  readonly mostObjects?: number | undefined;
  /** Splits of the location itself, by the names of its files or folders. */
  readonly splits?: readonly string[];
  /** Other layouts that the location could be read as. */
  readonly otherLayouts?: readonly LayoutName[];
  /** Number of files in the shards that belong to no sample, as far as the shards were walked to open them. */
  readonly skippedEntries?: number;
  /** Finds shards by key, for a packed dataset with a folder for sidecar files on this machine. */
  readonly keyIndex?: KeyIndex;
}

/** The datasets of a mixture. */
export interface MixedDatasets {
  readonly datasets: readonly { readonly name: string; readonly dataset: StoredDataset }[];
}

/** The parts of a stored dataset, before overlays are applied. */
export interface StoredParts extends DatasetParts {
  /** Returns the identity of a dataset of only the first shards: that of the dataset before it grew. */
  identityOfFirst(shards: number): string;
  /** The only split of {@link DatasetParts.splits} that is open. */
  readonly split?: string;
  /** Location for reading. `location` may lack a token that is added to every name. */
  readonly folder?: string;
}

/**
 * The shards of a dataset, for looking at what is stored. Opening reads the manifest. Indexes and shards are read when
 * they are needed. The code for loaders is most of this package and belongs to `Dataset`, so that a command such as
 * `ls` does not load it.
 */
export class StoredDataset implements AsyncDisposable {
  readonly location: string;
  readonly format: LayoutName;
  readonly identity: string;
  readonly classes: readonly string[];
  readonly classSamples: readonly number[];
  readonly fields: readonly string[];
  /** The largest number of objects of an image in the annotations that were packed, or undefined if it is unknown. */
  readonly mostObjects: number | undefined;
  /** Splits of the location itself, by the names of its files or folders. All are open unless one was requested. */
  readonly splits: readonly string[];
  /** Other layouts that the location could be read as, with the option `layout`. */
  readonly otherLayouts: readonly LayoutName[];
  /**
   * Number of files in shards of other software that belong to no sample: dotfiles and names without a dot. In a zip,
   * this includes files without an image. Shards whose index was stored are not counted.
   */
  readonly skippedEntries: number;
  /** The datasets of a mixture and how they are mixed; null for a single dataset. */
  readonly mixture: MixedDatasets | null = null;
  readonly #files: ShardFiles;
  readonly #lookUp: LookUp;
  readonly #keyIndex: KeyIndex | undefined;
  #keys: Promise<Keys> | null = null;

  constructor(parts: DatasetParts) {
    this.location = parts.location;
    this.format = parts.format;
    this.identity = parts.identity;
    this.classes = parts.classes;
    this.classSamples = parts.classSamples;
    this.fields = parts.fields;
    this.mostObjects = parts.mostObjects;
    this.splits = parts.splits ?? [];
    this.otherLayouts = parts.otherLayouts ?? [];
    this.skippedEntries = parts.skippedEntries ?? 0;
    this.#files = new ShardFiles(parts.shards);
    this.#lookUp = new LookUp(this.#files);
    this.#keyIndex = parts.keyIndex;
  }

  /** Number of samples. */
  get size(): number {
    return this.#files.firstSample.at(-1)!;
  }

  get shards(): readonly ShardFile[] {
    return this.#files.files;
  }

  /** Total size of the shards, in bytes. */
  get bytes(): number {
    return this.shards.reduce((sum, shard) => sum + shard.bytes, 0);
  }

  /**
   * Total size of the samples, in bytes. It is less than {@link bytes} if an overlay, a split or a list of keys hides
   * some.
   */
  get sampleBytes(): number {
    return this.shards.reduce((sum, shard) => sum + sampleBytesOf(shard), 0);
  }

  /** Mean size of a sample, in bytes; 0 without samples. */
  get meanSampleBytes(): number {
    return this.size === 0 ? 0 : this.sampleBytes / this.size;
  }

  /** The shards with their open files and indexes, for stages that read them. */
  get files(): ShardFiles {
    return this.#files;
  }

  /**
   * Returns one sample by key or by index, in its own memory. The first look-up by key reads all keys. Of a packed
   * dataset with more than 4 million samples it also makes an index of them on this machine, which later look-ups of all
   * processes use. Throws {@link SampleNotFoundError}.
   */
  async get(keyOrIndex: string | number, options: GetOptions = {}): Promise<Sample> {
    const { checksum, signal } = checkCallOptions('get', GET_OPTIONS, options);
    if (typeof keyOrIndex !== 'string' && typeof keyOrIndex !== 'number') {
      throw new OptionError(
        {},
        `get takes the key or the index of a sample, not a value of type ${typeof keyOrIndex}.`,
      );
    }
    return abortable(signal as AbortSignal | undefined, () => this.#get(keyOrIndex, checksum));
  }

  async #get(keyOrIndex: string | number, checksum: boolean): Promise<Sample> {
    const index = typeof keyOrIndex === 'number' ? keyOrIndex : await this.indexOf(keyOrIndex);
    if (!Number.isInteger(index) || index < 0 || index >= this.size) {
      const name = typeof keyOrIndex === 'number' ? `the index ${keyOrIndex}` : `the key "${keyOrIndex}"`;
      const hint = typeof keyOrIndex === 'string' ? await this.hintOnKey(keyOrIndex) : '';
      throw new SampleNotFoundError(
        { path: this.location, ...(typeof keyOrIndex === 'string' && { key: keyOrIndex }) },
        `${this.location} has no sample with ${name}${hint || `; "shardtool ls ${this.location} --samples" lists the ${this.size} it has.`}`,
      );
    }
    const key = typeof keyOrIndex === 'string' ? keyOrIndex : undefined;
    return this.#lookUp.sample(index, key, checksum);
  }

  /** Returns the index of the sample with this key, or -1. */
  async indexOf(key: string): Promise<number> {
    if (typeof key !== 'string')
      throw new OptionError({}, `A key must be a string, not a value of type ${typeof key}.`);
    return (await this.#keyTable()).numberOf(key);
  }

  /** Returns a hint for an unknown key, such as `; did you mean "cat/1"?`, or ''. */
  async hintOnKey(key: string): Promise<string> {
    return hintOnUnknownKey(await this.#keyTable(), key);
  }

  /**
   * Yields samples as they are stored, in the order of the dataset. Their bytes are yours to keep, unless `reuse` is
   * true.
   */
  samples(options: SamplesOptions = {}): AsyncGenerator<Sample> {
    return readSamples(this.#files, checkSamplesOptions(options));
  }

  /** Closes the shards. Reads that are still in progress end with an error. */
  async close(): Promise<void> {
    await this.#files.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #keyTable(): Promise<Keys> {
    this.#files.throwIfClosed();
    this.#keys ??= this.#readKeys().catch((error: unknown) => {
      this.#keys = null;
      throw error;
    });
    return this.#keys;
  }

  async #readKeys(): Promise<Keys> {
    const { firstSample } = this.#files;
    const keysOf = async (shard: number) => {
      this.#files.throwIfClosed();
      return (await this.shards[shard]!.loadParts(['key'])).key;
    };
    if (this.#keyIndex !== undefined && this.#keyIndex.samples > WHOLE_KEYS) {
      return new IndexedKeys(this.#keyIndex, { firstSample, keysOf });
    }
    return keysOfShards({ firstSample, keysOf });
  }
}
