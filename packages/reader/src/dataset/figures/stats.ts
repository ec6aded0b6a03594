import { CALL_OPTIONS, checkCallOptions, inTurn, type OptionTable, watchedCall } from '@shardtool/base';
import {
  type ImageKind,
  type IndexPart,
  imageFieldOf,
  kindOfField,
  type LayoutName,
  type PartOfIndex,
} from '@shardtool/format';
import { checkDataset } from '../check-dataset.js';
import { KeyRepetitions, type RepeatedKeys } from '../keys/repeated-keys.js';
import type { ShardFile } from '../shards/shard-file.js';
import type { StoredDataset } from '../stored-dataset.js';
import { Distribution, type DistributionSummary } from './distribution.js';

/** Contents of a dataset according to its indexes. Bytes of fields are as stored, without headers and padding. */
export interface DatasetStats {
  readonly format: LayoutName;
  readonly shards: number;
  readonly samples: number;
  /** Total size of the shard files. */
  readonly bytes: number;
  /**
   * Classes in the order of their numbers. Classes without a name are listed if a sample has them, and are named by
   * their number.
   */
  readonly classes: readonly { readonly name: string; readonly samples: number; readonly bytes: number }[];
  readonly samplesWithoutClass: number;
  readonly fields: readonly { readonly name: string; readonly bytes: DistributionSummary }[];
  /** Kinds by the names of the image fields. `npy` are uncompressed images. */
  readonly kinds: readonly { readonly kind: ImageKind | 'npy'; readonly samples: number; readonly bytes: number }[];
  /** Width of the images whose size is known, as stored. */
  readonly width: DistributionSummary;
  readonly height: DistributionSummary;
  readonly pixels: DistributionSummary;
  /** Number of images whose EXIF orientation is not 1. */
  readonly turned: number;
  /** Number of samples per shard; `shardBytes` is the size of a shard. */
  readonly shardSamples: DistributionSummary;
  readonly shardBytes: DistributionSummary;
  /** Keys that more than one sample has. Looking up such a key returns the first sample. */
  readonly repeatedKeys: RepeatedKeys;
}

/** Options of {@link getStats} and {@link findDuplicateKeys}. */
export interface StatsOptions {
  /**
   * Number of keys that are compared at a time. It bounds the memory: each takes 8 bytes. If a dataset has more samples,
   * its keys are read several times. Default: 120,000,000.
   */
  readonly keysAtOnce?: number | undefined;
  /** Called after each index that was read. */
  readonly onProgress?: ((progress: IndexProgress) => void) | undefined;
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Progress of a call that reads indexes. An index that is read several times counts as often. */
export interface IndexProgress {
  readonly indexes: number;
  readonly totalIndexes: number;
}

const OPTIONS = {
  keysAtOnce: { kind: 'whole', from: 1, default: 120_000_000, help: 'Keys that are compared at a time' },
  onProgress: CALL_OPTIONS.onProgress,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

const INDEXES_AT_ONCE = 8;

/**
 * Computes statistics of a dataset from its indexes alone, one after the other. Throws OptionError, and FileError,
 * ShardIndexError and VersionError of an index.
 */
export async function getStats(dataset: StoredDataset, options: StatsOptions = {}): Promise<DatasetStats> {
  return readingKeys('getStats', dataset, options, (parts, count) => statsOf(dataset, parts, count));
}

/**
 * Finds keys that occur more than once in a dataset or a mixture. Reads the keys of all indexes. Throws OptionError, and
 * FileError, ShardIndexError and VersionError of an index.
 */
export async function findDuplicateKeys(dataset: StoredDataset, options: StatsOptions = {}): Promise<RepeatedKeys> {
  return readingKeys('findDuplicateKeys', dataset, options, async (parts, count) => {
    const keys = new KeyRepetitions(dataset.size, parts);
    await addOtherParts(dataset, keys, { parts, first: 0 }, count);
    return keys.found;
  });
}

/** Checks the arguments of a call, and runs it with the number of times that the keys are read. */
async function readingKeys<Result>(
  call: string,
  dataset: StoredDataset,
  options: StatsOptions,
  work: (parts: number, count: () => void) => Promise<Result>,
): Promise<Result> {
  checkDataset(call, dataset);
  const { keysAtOnce } = checkCallOptions(call, OPTIONS, options);
  const parts = Math.max(1, Math.ceil(dataset.size / keysAtOnce));
  const totalIndexes = parts * dataset.shards.length;
  return watchedCall<IndexProgress, Result>(options, (report) => {
    let indexes = 0;
    return work(parts, () => report({ indexes: Math.min(++indexes, totalIndexes), totalIndexes }));
  });
}

async function statsOf(dataset: StoredDataset, parts: number, count: () => void): Promise<DatasetStats> {
  const keys = new KeyRepetitions(dataset.size, parts);
  const totals = new Totals();
  const shardSamples = new Distribution();
  const shardBytes = new Distribution();
  keys.begin(0);
  for await (const { shard, index } of indexesInTurn(dataset, [
    'key',
    'fields',
    'width',
    'height',
    'orientation',
    'cls',
  ])) {
    shardSamples.add(shard.samples);
    shardBytes.add(shard.bytes);
    for (const key of index.key) keys.add(key);
    totals.add(index);
    count();
  }
  keys.end();
  await addOtherParts(dataset, keys, { parts, first: 1 }, count);
  const { format, size: samples, bytes, shards } = dataset;
  return {
    format,
    shards: shards.length,
    samples,
    bytes,
    ...totals.summary(dataset.classes),
    shardSamples: shardSamples.summary(),
    shardBytes: shardBytes.summary(),
    repeatedKeys: keys.found,
  };
}

/** Adds the keys of the parts from `first` on, and examples of repeated keys. `count` is called after each index. */
async function addOtherParts(
  dataset: StoredDataset,
  keys: KeyRepetitions,
  { parts, first }: { readonly parts: number; readonly first: number },
  count: () => void,
): Promise<void> {
  for (let part = first; part < parts; part++) {
    keys.begin(part);
    for await (const { index } of indexesInTurn(dataset, ['key'])) {
      for (const key of index.key) keys.add(key);
      count();
    }
    keys.end();
  }
  if (!keys.lacksExamples) return;
  for await (const { index } of indexesInTurn(dataset, ['key'])) {
    for (const key of index.key) keys.addExample(key);
    if (!keys.lacksExamples) return;
    count();
  }
}

/** Yields parts of the indexes of all shards, in their order. Some indexes are read ahead. */
function indexesInTurn<P extends IndexPart>(
  { shards }: StoredDataset,
  parts: readonly P[],
): AsyncGenerator<{ shard: ShardFile; index: PartOfIndex<P> }> {
  return inTurn(shards, INDEXES_AT_ONCE, async (shard) => ({ shard, index: await shard.loadParts(parts) }));
}

type IndexColumns = PartOfIndex<'fields' | 'width' | 'height' | 'orientation' | 'cls'>;

interface Sum {
  samples: number;
  bytes: number;
}

/** Counts over all samples. */
class Totals {
  /** Sums by class number, which may be any number up to 2^31 - 1. */
  readonly #classes = new Map<number, Sum>();
  #withoutClass = 0;
  readonly #fields = new Map<string, Distribution>();
  readonly #kinds = new Map<ImageKind | 'npy', Sum>();
  readonly #width = new Distribution();
  readonly #height = new Distribution();
  readonly #pixels = new Distribution();
  #turned = 0;

  add({ samples, fields, width, height, orientation, cls }: IndexColumns): void {
    const sampleBytes = new Float64Array(samples);
    for (const [name, { offset, bytes }] of fields) {
      const sizes = this.#fields.get(name) ?? new Distribution();
      this.#fields.set(name, sizes);
      for (let row = 0; row < samples; row++) {
        if (offset[row]! < 0) continue;
        sizes.add(bytes[row]!);
        sampleBytes[row]! += bytes[row]!;
      }
    }
    this.#addKinds(fields, width, samples);
    for (let row = 0; row < samples; row++) {
      const number = cls[row]!;
      if (number < 0) this.#withoutClass++;
      else this.#addToClass(number, sampleBytes[row]!);
      if (width[row]! === 0) continue;
      this.#width.add(width[row]!);
      this.#height.add(height[row]!);
      this.#pixels.add(width[row]! * height[row]!);
      if (orientation[row]! !== 1) this.#turned++;
    }
  }

  summary(names: readonly string[]) {
    const numbers = new Set([...names.keys(), ...this.#classes.keys()]);
    const classes = [...numbers]
      .sort((a, b) => a - b)
      .map((number) => {
        const { samples, bytes } = this.#classes.get(number) ?? { samples: 0, bytes: 0 };
        return { name: names[number] ?? String(number), samples, bytes };
      });
    return {
      classes,
      samplesWithoutClass: this.#withoutClass,
      fields: [...this.#fields].sort(byName).map(([name, bytes]) => ({ name, bytes: bytes.summary() })),
      kinds: [...this.#kinds].sort(byName).map(([kind, sum]) => ({ kind, ...sum })),
      width: this.#width.summary(),
      height: this.#height.summary(),
      pixels: this.#pixels.summary(),
      turned: this.#turned,
    };
  }

  #addToClass(number: number, bytes: number): void {
    addTo(sumOf(this.#classes, number), bytes);
  }

  /**
   * If a sample has several images, only the first one by name counts, as everywhere. An array that is not an image has
   * no width.
   */
  #addKinds(fields: IndexColumns['fields'], width: Int32Array, samples: number): void {
    const counted = new Uint8Array(samples);
    const names = [...fields.keys()].map((name) => ({ name }));
    for (let rest = names; ; ) {
      const name = imageFieldOf(rest);
      if (name === undefined) return;
      rest = rest.filter((field) => field.name !== name);
      const { offset, bytes } = fields.get(name)!;
      const kind = kindOfField(name) ?? 'npy';
      for (let row = 0; row < samples; row++) {
        if (counted[row] === 1 || offset[row]! < 0 || (kind === 'npy' && width[row] === 0)) continue;
        counted[row] = 1;
        addTo(sumOf(this.#kinds, kind), bytes[row]!);
      }
    }
  }
}

function sumOf<Key>(sums: Map<Key, Sum>, key: Key): Sum {
  let sum = sums.get(key);
  if (sum === undefined) {
    sum = { samples: 0, bytes: 0 };
    sums.set(key, sum);
  }
  return sum;
}

function addTo(sum: Sum, bytes: number): void {
  sum.samples++;
  sum.bytes += bytes;
}

function byName(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : 1;
}
