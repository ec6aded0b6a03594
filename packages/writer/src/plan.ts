import { OptionError, shuffle } from '@shardtool/format';
import { addClasses, folderClass } from './classes.js';
import { type FileTable, pathAt, pathBytes } from './file-table.js';
import { type Grouping, groupFiles } from './grouping.js';

/** Which sample goes to which shard: plain numbers, in shared memory, the same for every number of workers. */
export interface PackPlan {
  /** Names of the classes in the order of their numbers. */
  readonly classes: readonly string[];
  readonly samples: number;
  readonly shards: number;
  /** Shard k has the samples `shardStart[k]` to `shardStart[k + 1] - 1`. */
  readonly shardStart: Uint32Array;
  /** Sample s has the files `files[fileStart[s]]` to `files[fileStart[s + 1] - 1]`, its image first. */
  readonly fileStart: Uint32Array;
  readonly files: Uint32Array;
  /** Class number of each sample; -1 where it has none. */
  readonly cls: Int32Array;
  /** Size of all files of the plan, in bytes. */
  readonly sourceBytes: number;
  /** Size of all shards as tars, at most, in bytes. */
  readonly shardBytes: number;
}

export interface PlanOptions {
  /** Fields of files that belong to an image, and are never the image themselves. */
  readonly fields: readonly string[];
  readonly maxShardBytes: number;
  readonly maxShardSamples: number;
  readonly seed: number;
  readonly shuffle: boolean;
  /** The classes in the order of their numbers; null takes those that are found. */
  readonly classes: readonly string[] | null;
  /** What a labels file says; then only the images that it names are packed. */
  readonly labels: PlannedLabels | null;
  /** 1 for each image that is not packed because another one stands for it. */
  readonly leftOut?: Uint8Array | undefined;
  /** Of a dataset that grows: its classes, which come first, and 1 for each file that is packed already. */
  readonly base?: { readonly classes: readonly string[]; readonly packed: Uint8Array } | undefined;
}

export interface PlannedLabels {
  /** Row of each file; -1 where no row names it. */
  readonly rowOfFile: Int32Array;
  /** Class of each row, '' for none; null takes the folders as classes. */
  readonly cls: readonly string[] | null;
}

/** Keeps the order of a pack apart from the orders of epochs, which have other stream numbers. */
const PACK_STREAM = 0xfffffffd;

/**
 * Says which sample goes to which shard, in which order. Pure: the same files and options give the same plan, and each
 * shard can be written by anyone. `files` is sorted by path and measured. Throws {@link KeyCollisionError} for two files
 * at one key, {@link OptionError} for a class that a fixed list does not have.
 */
export function planShards(files: FileTable, options: PlanOptions): PackPlan {
  const { labels, base, leftOut } = options;
  const isWanted = (file: number) =>
    (labels === null || labels.rowOfFile[file] !== -1) && base?.packed[file] !== 1 && leftOut?.[file] !== 1;
  const grouping = groupFiles(files, options.fields, isWanted);
  const { classes, cls } = numberClasses(files, grouping, options);
  const order = new Uint32Array(grouping.samples);
  for (let sample = 0; sample < order.length; sample++) order[sample] = sample;
  if (options.shuffle) shuffle(order, order.length, options.seed, 0, PACK_STREAM, 0);
  const row = new SampleRowOfShards(files, grouping, cls);
  for (const sample of order) row.add(sample);
  const shardStart = cutShards(row.sizes, options.maxShardBytes, options.maxShardSamples);
  return row.toPlan(classes, shardStart);
}

/** The samples in the order in which shards will have them. */
class SampleRowOfShards {
  /** Of each sample in a shard, in bytes. */
  readonly sizes: Float64Array;
  readonly #table: FileTable;
  readonly #grouping: Grouping;
  /** By sample of the grouping; -1 for none. */
  readonly #classes: Int32Array;
  readonly #fileStart: Uint32Array;
  readonly #files: Uint32Array;
  readonly #cls: Int32Array;
  #samples = 0;
  #used = 0;
  #sourceBytes = 0;
  #shardBytes = 0;

  constructor(table: FileTable, grouping: Grouping, classes: Int32Array) {
    this.#table = table;
    this.#grouping = grouping;
    this.#classes = classes;
    this.sizes = new Float64Array(grouping.samples);
    this.#fileStart = sharedUint32(grouping.samples + 1);
    this.#files = sharedUint32(grouping.files.length);
    this.#cls = new Int32Array(new SharedArrayBuffer(grouping.samples * 4));
  }

  add(sample: number): void {
    const { fileStart, files } = this.#grouping;
    const cls = this.#classes[sample]!;
    const image = fileStart[sample]!;
    let size = cls === -1 ? 0 : entryBytes(1, 0);
    for (let member = image; member < fileStart[sample + 1]!; member++) {
      const file = files[member]!;
      // A class of its own goes before the one in a file beside the image.
      if (cls !== -1 && member > image && isClassFile(pathAt(this.#table, file))) continue;
      const bytes = Math.max(0, this.#table.bytes[file]!);
      size += entryBytes(bytes, pathBytes(this.#table, file));
      this.#sourceBytes += bytes;
      this.#files[this.#used++] = file;
    }
    this.#cls[this.#samples] = cls;
    this.sizes[this.#samples++] = size;
    this.#fileStart[this.#samples] = this.#used;
    this.#shardBytes += size;
  }

  toPlan(classes: readonly string[], shardStart: Uint32Array): PackPlan {
    const shards = shardStart.length - 1;
    return {
      classes,
      samples: this.#samples,
      shards,
      shardStart,
      fileStart: this.#fileStart,
      files: this.#files.subarray(0, this.#used),
      cls: this.#cls,
      sourceBytes: this.#sourceBytes,
      shardBytes: this.#shardBytes + shards * END_OF_ARCHIVE,
    };
  }
}

function isClassFile(path: string): boolean {
  return path.toLowerCase().endsWith('.cls');
}

interface ClassNumbers {
  readonly classes: readonly string[];
  /** By sample, in the order of the images' paths. */
  readonly cls: Int32Array;
}

function numberClasses(files: FileTable, grouping: Grouping, options: PlanOptions): ClassNumbers {
  const { labels } = options;
  const imageOf = (sample: number) => grouping.files[grouping.fileStart[sample]!]!;
  const found = new Map<string, number>();
  const numberFound = (name: string | undefined): number => {
    if (name === undefined) return -1;
    const known = found.get(name);
    if (known === undefined) found.set(name, found.size);
    return known ?? found.size - 1;
  };
  const cls = new Int32Array(grouping.samples);
  for (let sample = 0; sample < cls.length; sample++) {
    cls[sample] = numberFound(classOf(files, imageOf(sample), labels));
  }
  const fromLabels = labels !== null && labels.cls !== null;
  const classes = options.classes ?? addClasses(options.base?.classes ?? [], [...found.keys()], fromLabels);
  const numbers = new Map(classes.map((name, number) => [name, number]));
  const numberOf = [...found].map(
    ([name, id]) => numbers.get(name) ?? refuseClass(name, imageOf(cls.indexOf(id)), files),
  );
  return { classes, cls: cls.map((id) => (id === -1 ? -1 : numberOf[id]!)) };
}

function classOf(files: FileTable, image: number, labels: PlannedLabels | null): string | undefined {
  if (labels === null || labels.cls === null) return folderClass(pathAt(files, image));
  const name = labels.cls[labels.rowOfFile[image]!]!;
  return name === '' ? undefined : name;
}

function refuseClass(name: string, image: number, files: FileTable): never {
  const path = pathAt(files, image);
  throw new OptionError(
    { path },
    `${path} has the class "${name}", which the list of classes does not have; add it at the end, or exclude the file.`,
  );
}

const BLOCK = 512;
const END_OF_ARCHIVE = 2 * BLOCK;

/**
 * Bytes of one field in a tar, at most: header, payload in blocks of 512, and a pax record for a long name. All layouts
 * are cut by this measure, so that a dataset has the same shards in each of them.
 */
export function entryBytes(payload: number, nameBytes: number): number {
  const pax = nameBytes > 100 ? BLOCK + inBlocks(nameBytes + 16) : 0;
  return pax + BLOCK + inBlocks(payload);
}

function inBlocks(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

/**
 * Cuts a row of samples of these sizes into shards of about equal size (or equal count, where that is the closer limit),
 * none above a limit unless a single sample is. Returns where each shard starts, and the end.
 */
export function cutShards(sizes: Float64Array, maxBytes: number, maxSamples: number): Uint32Array {
  const limit = maxBytes - END_OF_ARCHIVE;
  const largest = sizes.reduce((most, size) => Math.max(most, size), 0);
  // A shard ends with the sample that reaches its share: so much room is left for that one.
  const usable = Math.max(1, limit - Math.min(largest, limit / 8));
  const starts = [0];
  let bytesLeft = sizes.reduce((sum, size) => sum + size, 0);
  let at = 0;
  while (at < sizes.length) {
    const samplesLeft = sizes.length - at;
    const byBytes = Math.ceil(bytesLeft / usable);
    const bySamples = Math.ceil(samplesLeft / maxSamples);
    const share = bySamples >= byBytes ? samplesLeft / bySamples : bytesLeft / byBytes;
    let bytes = 0;
    let samples = 0;
    do {
      bytes += sizes[at++]!;
      samples++;
    } while (
      at < sizes.length &&
      (bySamples >= byBytes ? samples : bytes) < share &&
      samples < maxSamples &&
      bytes + sizes[at]! <= limit
    );
    bytesLeft -= bytes;
    starts.push(at);
  }
  const shared = sharedUint32(starts.length);
  shared.set(starts);
  return shared;
}

function sharedUint32(length: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(length * 4));
}
