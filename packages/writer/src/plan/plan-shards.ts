import { indexArray, OptionError, shuffle } from '@shardtool/base';
import type { FileReader, SourceFiles } from '../source/source-files.js';
import { addClasses, folderClass } from './classes.js';
import { type GroupedFiles, type Grouping, groupFiles } from './grouping.js';
import { Naming } from './naming.js';
import { OUTCOME } from './outcomes.js';

/**
 * Which sample goes to which shard, the same for every number of workers. Stored as numeric arrays, 20 bytes for a
 * sample of one file. Samples are numbered in the order of their images' paths, files as in {@link SourceFiles}.
 */
export interface PackPlan {
  /** Class names in the order of their numbers. */
  readonly classes: readonly string[];
  readonly grouping: Grouping;
  /** Class number of each sample; -1 if it has none. */
  readonly cls: Int32Array;
  /** Samples in the order in which they are written to the shards. */
  readonly order: Uint32Array;
  readonly shards: number;
  /** Shard k has the samples `order[shardStart[k]]` to `order[shardStart[k + 1] - 1]`. */
  readonly shardStart: Uint32Array;
  /** Size of all files of the plan, in bytes. */
  readonly sourceBytes: number;
  /** Upper limit of the size of all shards as tars, in bytes. */
  readonly shardBytes: number;
  /** Outcome of each file: a number of `OUTCOME`. */
  readonly outcomes: Uint8Array;
  /**
   * Skipped files that have the key of another file: from the number of the skipped file to the number of the kept one.
   */
  readonly collisions: ReadonlyMap<number, number>;
}

export interface PlanOptions {
  /** Fields of files that belong to an image, and are never the image themselves. */
  readonly fields: readonly string[];
  /** Folders next to those of the images that their files belong to, such as `masks=seg.png`. */
  readonly pair?: readonly string[] | undefined;
  /** For samples without images: the field that every sample has. */
  readonly primary?: string | undefined;
  /** How files with the same key are handled: stop with an error, or keep the first by path. */
  readonly onBad?: 'raise' | 'quarantine' | undefined;
  readonly maxShardBytes: number;
  readonly maxShardSamples: number;
  readonly seed: number;
  readonly shuffle: boolean;
  /** Class names in the order of their numbers; null uses the classes that are found. */
  readonly classes: readonly string[] | null;
  /** Contents of a labels file. If given, only the images that it lists are packed. */
  readonly labels: PlannedLabels | null;
  /**
   * For each image that is not packed: `OUTCOME.duplicate` if another has the same bytes, `OUTCOME.collides` if the
   * dataset has its key.
   */
  readonly leftOut?: Uint8Array | undefined;
  /** The dataset to be extended: its classes, which come first, and 1 for each file that is already packed. */
  readonly base?: { readonly classes: readonly string[]; readonly packed: Uint8Array } | undefined;
}

export interface PlannedLabels {
  /** Row of each file; -1 if the labels have none. */
  readonly rowOfFile: Int32Array;
  /** Size in a tar of the fields that each row adds to its images, in bytes. */
  readonly textBytes?: Float64Array | undefined;
  /** Class of each row, '' for none; null uses the folders as classes. */
  readonly cls: readonly string[] | null;
  /** Labels files that are among the source files. They are in no sample. */
  readonly ownFiles?: ReadonlySet<number> | undefined;
}

/** Random stream of a pack's order. Orders of epochs have other stream numbers. */
const PACK_STREAM = 0xfffffffd;

/**
 * Decides which sample goes to which shard, and in which order. Pure: the same files and options give the same plan,
 * and any worker can write any shard. The files must have been measured. Throws {@link KeyCollisionError} for two files
 * with the same key, and {@link OptionError} for a class that is not in a fixed list.
 */
export function planShards(files: SourceFiles, options: PlanOptions): PackPlan {
  const { labels, base, leftOut } = options;
  const imageOutcome = (file: number) => {
    if (base?.packed[file] === 1) return OUTCOME.inDataset;
    if (labels !== null && labels.rowOfFile[file] === -1) return OUTCOME.noRow;
    return leftOut?.[file] ?? OUTCOME.packed;
  };
  const naming = new Naming(options);
  const isLabels = (file: number) => labels?.ownFiles?.has(file) ?? false;
  const grouped = groupFiles(files, { naming, imageOutcome, isLabels, onCollision: options.onBad ?? 'raise' });
  const { outcomes, collisions } = grouped;
  const { classes, cls } = numberClasses(files, grouped, options);
  const grouping = withoutClassFiles(files, grouped, cls);
  const { sizes, sourceBytes, shardBytes } = measureSamples(files, grouping, cls, labels);
  const order = indexArray(grouping.samples);
  if (options.shuffle) shuffle(order, order.length, options.seed, 0, PACK_STREAM, 0);
  const shardStart = cutShards(sizes, order, options.maxShardBytes, options.maxShardSamples);
  const shards = shardStart.length - 1;
  return {
    classes,
    grouping,
    cls,
    order,
    shards,
    shardStart,
    sourceBytes,
    shardBytes: shardBytes + shards * END_OF_ARCHIVE,
    outcomes,
    collisions,
  };
}

/** Drops class files next to images that already have a class, which takes precedence. */
function withoutClassFiles(files: SourceFiles, { grouping, outcomes }: GroupedFiles, cls: Int32Array): Grouping {
  const { samples } = grouping;
  if (grouping.files.length === samples) return grouping;
  const reader = files.reader();
  const fileStart = new Uint32Array(samples + 1);
  const kept = new Uint32Array(grouping.files.length);
  let used = 0;
  for (let sample = 0; sample < samples; sample++) {
    const image = grouping.fileStart[sample]!;
    for (let member = image; member < grouping.fileStart[sample + 1]!; member++) {
      const file = grouping.files[member]!;
      if (cls[sample] !== -1 && member > image && isClassFile(reader.path(file))) {
        outcomes[file] = OUTCOME.classFile;
        continue;
      }
      kept[used++] = file;
    }
    fileStart[sample + 1] = used;
  }
  return { samples, fileStart, files: kept.subarray(0, used) };
}

function isClassFile(path: string): boolean {
  return path.toLowerCase().endsWith('.cls');
}

/** Returns the size in bytes of each sample in a shard, of all samples together, and of all source files. */
function measureSamples(files: SourceFiles, grouping: Grouping, cls: Int32Array, labels: PlannedLabels | null) {
  const reader = files.reader();
  const sizes = new Float64Array(grouping.samples);
  let sourceBytes = 0;
  let shardBytes = 0;
  for (let sample = 0; sample < sizes.length; sample++) {
    let size = cls[sample] === -1 ? 0 : entryBytes(1, 0);
    if (labels?.textBytes !== undefined) {
      const image = grouping.files[grouping.fileStart[sample]!]!;
      size += labels.textBytes[labels.rowOfFile[image]!]! + entryBytes(0, reader.pathBytes(image));
    }
    for (let member = grouping.fileStart[sample]!; member < grouping.fileStart[sample + 1]!; member++) {
      const file = grouping.files[member]!;
      const bytes = Math.max(0, reader.bytes(file));
      size += entryBytes(bytes, reader.pathBytes(file));
      sourceBytes += bytes;
    }
    sizes[sample] = size;
    shardBytes += size;
  }
  return { sizes, sourceBytes, shardBytes };
}

interface ClassNumbers {
  readonly classes: readonly string[];
  /** Class number of each sample. */
  readonly cls: Int32Array;
}

function numberClasses(files: SourceFiles, grouped: GroupedFiles, options: PlanOptions): ClassNumbers {
  const { grouping, imageFolders } = grouped;
  const { labels } = options;
  const imageOf = (sample: number) => grouping.files[grouping.fileStart[sample]!]!;
  const reader = files.reader();
  const found = new Map<string, number>();
  const numberFound = (name: string | undefined): number => {
    if (name === undefined) return -1;
    const known = found.get(name);
    if (known === undefined) found.set(name, found.size);
    return known ?? found.size - 1;
  };
  const cls = new Int32Array(grouping.samples);
  for (let sample = 0; sample < cls.length; sample++) {
    cls[sample] = numberFound(classOf(reader, imageOf(sample), labels, imageFolders));
  }
  const fromLabels = labels !== null && labels.cls !== null;
  const classes = options.classes ?? addClasses(options.base?.classes ?? [], [...found.keys()], fromLabels);
  const numbers = new Map(classes.map((name, number) => [name, number]));
  const numberOf = [...found].map(
    ([name, id]) => numbers.get(name) ?? refuseClass(name, reader.path(imageOf(cls.indexOf(id)))),
  );
  for (const [sample, id] of cls.entries()) cls[sample] = id === -1 ? -1 : numberOf[id]!;
  return { classes, cls };
}

function classOf(
  files: FileReader,
  image: number,
  labels: PlannedLabels | null,
  imageFolders: ReadonlySet<string>,
): string | undefined {
  if (labels === null || labels.cls === null) return folderClass(files.path(image), imageFolders);
  const name = labels.cls[labels.rowOfFile[image]!]!;
  return name === '' ? undefined : name;
}

function refuseClass(name: string, path: string): never {
  throw new OptionError(
    { path },
    `${path} has the class "${name}", which is not in the list of classes; add it at the end of the list, or exclude the file.`,
  );
}

const BLOCK = 512;
const END_OF_ARCHIVE = 2 * BLOCK;

/**
 * Upper limit of the size of one field in a tar, in bytes: header, payload in blocks of 512, and a pax record for a
 * long name. This size is used for all shard formats, so that a dataset is divided into the same shards in each of
 * them.
 */
export function entryBytes(payload: number, nameBytes: number): number {
  const pax = nameBytes > 100 ? BLOCK + inBlocks(nameBytes + 16) : 0;
  return pax + BLOCK + inBlocks(payload);
}

function inBlocks(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

/**
 * Divides samples of these sizes, in this order, into shards of about equal size (or equal count, if that is the
 * stricter limit). A shard exceeds a limit only if a single sample does. Returns the start of each shard, and the end.
 */
export function cutShards(sizes: Float64Array, order: Uint32Array, maxBytes: number, maxSamples: number): Uint32Array {
  const limit = maxBytes - END_OF_ARCHIVE;
  const largest = sizes.reduce((max, size) => Math.max(max, size), 0);
  // A shard ends with the sample that reaches its share, so this leaves room for that sample.
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
      bytes += sizes[order[at++]!]!;
      samples++;
    } while (
      at < sizes.length &&
      (bySamples >= byBytes ? samples : bytes) < share &&
      samples < maxSamples &&
      bytes + sizes[order[at]!]! <= limit
    );
    bytesLeft -= bytes;
    starts.push(at);
  }
  return Uint32Array.from(starts);
}
