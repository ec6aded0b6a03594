import {
  availableCores,
  type CheckedValues,
  checkGiven,
  checkStorageOptions,
  defaultsOf,
  OptionError,
  type OptionTable,
  type OwnChecks,
  option,
  sentence,
} from '@shardtool/base';
import {
  type DerivedSidecar,
  isImageExtension,
  type OutputLayoutName,
  type WrittenLayoutName,
} from '@shardtool/format';
import { countBraces, type StorageOptions } from '@shardtool/storage';
import { CONVERT_OPTIONS, OUTPUT_OPTIONS, PACK_OPTIONS, WRITER_OPTIONS } from './option-table.js';
import { type Part, type PartOption, partOf, type WriterPartOption, writerPartOf } from './part.js';
import { Naming } from './plan/naming.js';

/** Contents of an LMDB value: a msgpack map of the sample's fields, or its image alone. */
export type LmdbValues = (typeof OUTPUT_OPTIONS.lmdbValues.values)[number];

/** Optional sidecar files next to shards: all except their own index. */
export type OtherIndex = Exclude<DerivedSidecar, 'index'>;

/** Options of the output, which packing and converting share. */
export interface OutputOptions {
  /** Format of the shard files. */
  format?: WrittenLayoutName | undefined;
  /** What an LMDB value contains: `sample` is a map of all fields, `image` is the image alone. */
  lmdbValues?: LmdbValues | undefined;
  /** Indexes for other loaders, which need tar shards: `wids` for webdataset, `dali` for NVIDIA DALI. */
  index?: readonly OtherIndex[] | undefined;
  /** Maximum size of a shard, in bytes or as a text such as `256MiB`, measured as a tar. When images are re-encoded, source bytes are counted. */
  maxShardBytes?: number | string | undefined;
  /** Maximum number of samples in a shard. */
  maxShardSamples?: number | undefined;
  /**
   * Maximum size of a sample, all fields together, in bytes or as a text such as `4GiB`. A larger sample is an error. Tars take large fields in
   * pieces.
   */
  maxSampleBytes?: number | string | undefined;
  /** Prefix of the shard names: `train` gives `train-000000.tar`. */
  name?: string | undefined;
  /**
   * Number of worker threads. It changes the duration, never the bytes of the result. Default: the number of cores that the process may use ({@link availableCores}). If
   * there is little work, no threads are started.
   */
  workers?: number | undefined;
  /**
   * Folder on this machine for shards that are being uploaded to a bucket. It holds a few shards, whatever the size of
   * the dataset. Default: the system's temporary folder (TMPDIR).
   */
  staging?: string | undefined;
  /** Removes what an earlier pack left in the output folder, and nothing else. */
  overwrite?: boolean | undefined;
  /** Called about ten times per second. */
  onProgress?: ((progress: PackProgress) => void) | undefined;
  /** Aborts the work. Finished shards are kept. */
  signal?: AbortSignal | undefined;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  storage?: StorageOptions | undefined;
}

/**
 * The source of a pack: a folder or a remote location such as `s3://bucket/photos`, as text or as `folder`. `list` selects files of
 * it, like the option `files`: paths, or a text file with one path per line.
 */
export type PackSource = string | { readonly folder: string; readonly list?: string | readonly string[] | undefined };

/** A folder, by its name without a path, whose files become a field of the images in other folders. */
export interface PairedFolder {
  readonly folder: string;
  readonly field: string;
}

/** Options of a pack. All are optional; {@link PACK_DEFAULTS} has the defaults. */
export interface PackOptions extends OutputOptions {
  /** Seed of the order in which samples are put into shards; 0 to 2^53 - 1. */
  seed?: number | undefined;
  /** False keeps the order of the paths. */
  shuffle?: boolean | undefined;
  /** Class names in the order of their class numbers, or a text file with one name per line. */
  classes?: string | readonly string[] | undefined;
  /**
   * A CSV file with a header row, or JSON Lines: `path`, optionally `class`, and further columns for the index.
   * Default: a `metadata.csv` or `metadata.jsonl` in the source that has a column `file_name`; its class column is
   * called `label`.
   */
  labels?: string | undefined;
  /**
   * Stops with an error if an image of the source has no row in `labels` or `coco`. Default: such images are skipped
   * and counted.
   */
  requireLabels?: boolean | undefined;
  /**
   * Columns with the origin of each sample: `source_location`, `source_modified`, `source_sha256`, `ingested` and
   * `pack_command`. With `ingested` or `command` the indexes differ from pack to pack. Default: none.
   */
  provenance?: readonly ('location' | 'modified' | 'sha256' | 'ingested' | 'command')[] | undefined;
  /**
   * Counts rows of `labels` or `coco` whose file is missing, and lists them in skipped.jsonl. Default: they are bad
   * files.
   */
  allowMissingFiles?: boolean | undefined;
  /**
   * Packs the folders `train`, `val` and `test` (or similar names of splits) of the source. Each becomes a dataset of
   * that name below the output, and all share one list of classes.
   */
  splits?: boolean | undefined;
  /**
   * A JSON file with COCO annotations, in which `file_name` is a path below the source. Each image gets its objects as
   * the field `json`. The categories, ordered by id, become the classes that the labels refer to.
   */
  coco?: string | undefined;
  /**
   * YOLO's `data.yaml`, or a text file with one class name per line. Each image gets the objects of its label file
   * (`labels/a.txt` for `images/a.jpg`) as the field `json`, with coordinates as fractions of the image's width and
   * height.
   */
  yolo?: string | undefined;
  /** The files to pack instead of the whole folder: their paths, or a text file with one path per line. */
  files?: string | readonly string[] | undefined;
  /**
   * File with the names, sizes and times of the files of a bucket, which is read instead of listing the bucket: the
   * `manifest.json` of an S3 Inventory, one of its CSV or Parquet files, or any Parquet file, or CSV file with a header, that
   * has the columns `key` and `size`, and optionally `bucket` and `last_modified`. Keys are complete keys of the bucket; keys
   * outside of the source are skipped.
   */
  manifest?: string | undefined;
  /**
   * Extensions of files that belong to the image with the same stem, even if they are images themselves: `seg.png`.
   * With `_mask.png`, 1_mask.png becomes the field mask.png of 1.jpg.
   */
  fields?: readonly string[] | undefined;
  /**
   * For samples without images, the extension of the file that every sample has: `npy`, `txt`, `json`, `latent.npy`.
   * Other files with the same stem are further fields. Default: every sample has an image.
   */
  primary?: string | undefined;
  /**
   * Folders whose files belong to images elsewhere. With `{ folder: 'masks', field: 'seg.png' }`, masks/cat/1.png becomes
   * the field seg.png of images/cat/1.jpg (images can be any folder next to masks) or of cat/1.jpg.
   */
  pair?: readonly PairedFolder[] | undefined;
  /** Glob patterns below the source. Only matching files are packed. */
  include?: readonly string[] | undefined;
  /** Glob patterns below the source. Matching files are not packed. */
  exclude?: readonly string[] | undefined;
  /** Target length of the shorter side in pixels. Smaller images are not enlarged. */
  resize?: number | undefined;
  /** Quality of re-encoded JPEG and WebP, 1 to 100. */
  quality?: number | undefined;
  /** Re-encodes every image in this format. */
  imageFormat?: ImageFormat | undefined;
  /**
   * How images are checked: `header` reads kind and size; `decode` decodes all of it, which finds truncated and damaged
   * images.
   */
  check?: 'header' | 'decode' | undefined;
  /** Images whose shorter side has fewer pixels count as bad. */
  minSize?: number | undefined;
  /** Images with more pixels, by their header or once decoded, count as bad. */
  maxPixels?: number | undefined;
  /**
   * Removes Exif, XMP, IPTC, comments and thumbnails without re-encoding. Colours and orientation are kept, and damaged
   * images are not changed.
   */
  stripMetadata?: boolean | undefined;
  /**
   * Packs images with the same bytes once. The first by path is kept, and duplicates.jsonl lists the others. With
   * `append`, new images that are already in the dataset are not packed again. If packing changes the bytes (`resize`,
   * `quality`, `imageFormat`, `stripMetadata`), new images are compared only with each other.
   */
  dedupe?: boolean | undefined;
  /** How files that cannot be packed are handled: stop with an error, or list them in quarantine.jsonl. */
  onBad?: 'raise' | 'quarantine' | undefined;
  /** Share of samples that may be bad before the pack stops with an error. */
  maxBad?: number | undefined;
  /**
   * Memory limit, in bytes or as a text such as `64MiB`, for the paths, sizes and times of the source's files during planning. Beyond it they are
   * written to disk.
   */
  planMemory?: number | string | undefined;
  /**
   * Number of concurrent file requests. Default: if the source is on a fast local disk, the number of workers.
   * Otherwise up to 256, adjusted to the number that gives the highest rate.
   */
  inFlight?: number | undefined;
  /**
   * Seconds without an answer from a file system that is not a local disk, after which the pack stops with an error.
   */
  ioTimeout?: number | undefined;
  /** Only plans: scans, measures, and reports what a pack would write. */
  dryRun?: boolean | undefined;
  /**
   * Discards the output of an unfinished pack and starts from the beginning. Default: the unfinished pack is resumed.
   */
  restart?: boolean | undefined;
  /** Reads all finished shards again when resuming. Default: only their sizes and indexes are checked. */
  recheck?: boolean | undefined;
  /**
   * Adds shards for the images whose paths are not yet in the dataset of the output folder. Existing shards and class
   * numbers do not change. Omitted options keep the values of the dataset.
   */
  append?: boolean | undefined;
  /**
   * With `append`: samples whose files or labels have changed are packed again in new shards, and samples whose files are
   * gone are removed. Earlier versions keep them. Default: changes are only listed in changed.jsonl.
   */
  applyChanges?: boolean | undefined;
  /**
   * With `append`: how changed files are found. `time`: the size differs, or the file is newer than its shard.
   * `checksum`: the size or the bytes differ; all files of the dataset are read. Default: `time`.
   */
  compare?: 'time' | 'checksum' | undefined;
  /**
   * Packs one part of the shards: `{ index: 2, of: 16 }` is the third of 16 parts. `auto` takes the part from the
   * environment variables of the job scheduler. Parts may run at the same time, on many machines.
   */
  part?: PartOption | undefined;
}

/** Formats for re-encoded images. `npy` is uncompressed: a uint8 NumPy array of height x width x 3. */
export type ImageFormat = 'jpg' | 'png' | 'webp' | 'npy';

/** Progress of a pack. `bytes` counts bytes of the source. */
export interface PackProgress {
  readonly stage: 'scan' | 'measure' | 'dedupe' | 'pack' | 'convert' | 'commit';
  readonly files: number;
  /** 0 during the scan, when the total is not known yet. */
  readonly totalFiles: number;
  readonly bytes: number;
  readonly totalBytes: number;
}

/** Default values of {@link PackOptions}. `quality` applies only if images are re-encoded. */
export const PACK_DEFAULTS = {
  ...defaultsOf(OUTPUT_OPTIONS),
  ...defaultsOf(PACK_OPTIONS),
  quality: Number(PACK_OPTIONS.quality.shown),
};

/** Options of the programming interface that the command line does not have. */
const PROGRAM_OPTIONS = {
  onProgress: {
    kind: 'own',
    type: '(progress: PackProgress) => void',
    must: 'is a function',
    help: 'Called with the progress',
  },
  signal: { kind: 'own', type: 'AbortSignal', must: 'is an AbortSignal', help: 'Aborts the work' },
  storage: {
    kind: 'own',
    type: 'StorageOptions',
    must: 'is an object',
    help: 'Options for requests to remote storage',
  },
} as const satisfies OptionTable;
const OWN_CHECKS: OwnChecks = {
  onProgress: (value) => typeof value === 'function',
  signal: (value) => value instanceof AbortSignal,
  storage: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};
const OUTPUT_TABLE = { ...OUTPUT_OPTIONS, ...PROGRAM_OPTIONS };
const PACK_TABLE = { ...OUTPUT_TABLE, ...PACK_OPTIONS };

/** {@link OutputOptions} after checking, with defaults filled in. */
export type CheckedOutputOptions = Omit<CheckedValues<typeof OUTPUT_OPTIONS>, 'workers'> &
  Pick<OutputOptions, 'onProgress' | 'signal' | 'storage'> & {
    readonly workers: number;
    /** True if the caller did not set `workers`. A small job then runs on the calling thread. */
    readonly isWorkersDefault: boolean;
    /** Names of the options that the caller set. */
    readonly given: readonly string[];
  };
/** {@link PackOptions} after checking, with defaults filled in. */
export type CheckedOptions = CheckedOutputOptions &
  Omit<CheckedValues<typeof PACK_OPTIONS>, 'part'> & { readonly part: Part | null };

/** {@link PackOptions} in which `pair` is text, such as `masks=seg.png`. */
export type GivenOptions = Omit<PackOptions, 'pair'> & { readonly pair?: readonly string[] | undefined };

type CheckedPackValues = CheckedOutputOptions & CheckedValues<typeof PACK_OPTIONS>;

/** Checks the options and fills in the defaults. Throws {@link OptionError}, which names the first invalid option. */
export function checkOptions(options: GivenOptions): CheckedOptions {
  const { part, ...given } = options;
  const { fields, ...others } = complete<CheckedPackValues>('A pack', PACK_TABLE, given);
  const primary = others.primary?.toLowerCase();
  const checked = {
    ...others,
    primary,
    fields: fields.map((field) => field.toLowerCase()),
    part: partOf(part, process.env),
  };
  if (primary !== undefined) refuseWithPrimary(checked, primary);
  new Naming(checked);
  checkPatterns(checked);
  if (checked.files !== undefined && (options.include !== undefined || options.exclude !== undefined)) {
    throw new OptionError(
      {},
      sentence`The option ${option('files')} already lists every file; remove ${option('include')} and ${option('exclude')}.`,
    );
  }
  if (checked.coco !== undefined && checked.resize !== undefined) {
    const message = sentence`The option ${option('resize')} would shrink the images but not the boxes of ${option('coco')}, which are in pixels; remove ${option('resize')} and resize in the loader, which also scales the boxes.`;
    throw new OptionError({}, message);
  }
  const other =
    (['part', 'overwrite'] as const).find((name) => options[name]) ??
    (options.dryRun && options.restart ? 'restart' : undefined);
  if (checked.append && other !== undefined) {
    throw new OptionError(
      {},
      sentence`The option ${option('append')} cannot be combined with ${option(other)}; remove one of them.`,
    );
  }
  const ofAppend = (['applyChanges', 'compare'] as const).find((name) => checked[name] !== PACK_DEFAULTS[name]);
  if (!checked.append && ofAppend !== undefined) {
    throw new OptionError(
      {},
      sentence`The option ${option(ofAppend)} is for datasets that grow: also set ${option('append')}.`,
    );
  }
  if (checked.applyChanges && checked.dedupe) {
    const message = sentence`The option ${option('applyChanges')} cannot be combined with ${option('dedupe')}, because a changed image would be compared with the sample that it replaces; remove one of them.`;
    throw new OptionError({}, message);
  }
  if (checked.compare === 'checksum' && changesBytes(checked)) {
    const message = sentence`The option ${option('compare')} is "checksum", but packing changes the bytes of images, so files cannot be compared with them; remove it.`;
    throw new OptionError({}, message);
  }
  const clears = (['overwrite', 'restart'] as const).find((name) => checked[name]);
  if (part !== undefined && clears !== undefined) {
    const message = sentence`The option ${option(clears)} cannot be combined with ${option('part')}, because it would delete the output of other parts; remove it, and empty the folder before you start the first part.`;
    throw new OptionError({}, message);
  }
  return checked;
}

/** Throws {@link OptionError} for options that are only for images, if samples have none. */
function refuseWithPrimary(checked: CheckedOptions, primary: string): void {
  checkPrimary(primary);
  const forImages = (['resize', 'imageFormat', 'stripMetadata', 'check', 'minSize', 'coco', 'yolo'] as const).find(
    (name) => checked[name] !== (PACK_DEFAULTS as Partial<CheckedOptions>)[name],
  );
  const other =
    forImages ??
    (checked.index.includes('crops') ? 'index' : null) ??
    (checked.lmdbValues === 'image' ? 'lmdbValues' : null);
  if (other === null) return;
  const value = other === 'index' ? 'crops' : undefined;
  throw new OptionError(
    {},
    sentence`The option ${option(other, value)} is for images, and with ${option('primary')} samples have none: remove one of them.`,
  );
}

/** Throws {@link OptionError} if samples with this field have an image. */
export function checkPrimary(primary: string): void {
  if (!isImageExtension(primary) && primary !== 'cls') return;
  throw new OptionError(
    {},
    sentence`The option ${option('primary')} is for samples without images, so it cannot be "${primary}": ${primary === 'cls' ? 'give the extension of the data, such as npy' : 'remove it'}.`,
  );
}

/** Options of a conversion after checking. A conversion can write more shard formats than a pack. */
export type CheckedConvertOptions = Omit<CheckedOutputOptions, 'format'> & {
  readonly format: OutputLayoutName;
  readonly seed?: number | undefined;
  readonly sortBy?: string | undefined;
};

export function checkConvertOptions(options: ConvertedOptions): CheckedConvertOptions {
  const { format, seed, sortBy } = CONVERT_OPTIONS;
  return complete<CheckedConvertOptions>('A conversion', { ...OUTPUT_TABLE, format, seed, sortBy }, options);
}

type ConvertedOptions = Omit<OutputOptions, 'format'> & {
  readonly format?: OutputLayoutName | undefined;
  readonly seed?: number | undefined;
  readonly sortBy?: string | undefined;
};

/** A writer runs on the thread of its caller, which knows how many samples it has added, so these options are omitted. */
const { workers: _workers, onProgress: _onProgress, ...WRITER_TABLE } = { ...OUTPUT_TABLE, ...WRITER_OPTIONS };

/** Checked options of a writer of samples. The writer itself checks the options that only programs can set. */
export function checkWriterOptions({
  part,
  ...options
}: OutputOptions & { readonly part?: WriterPartOption | undefined }): CheckedWriterOptions {
  const {
    classes: _,
    columns: __,
    ...checked
  } = complete<CheckedWriterOptions & Record<'classes' | 'columns', unknown>>(
    'A writer',
    { ...WRITER_TABLE, classes: OF_WRITER, columns: OF_WRITER },
    options,
    { classes: () => true, columns: () => true },
  );
  return { ...checked, part: writerPartOf(part, process.env) };
}

const OF_WRITER = { kind: 'own', type: 'unknown', must: '', help: '' } as const;

type CheckedWriterOptions = CheckedOutputOptions &
  Omit<CheckedValues<typeof WRITER_OPTIONS>, 'part'> & { readonly part: Part | null };

/** Checks `options` against the table and fills in the defaults; the default of `workers` is the number of cores. */
function complete<Checked extends Pick<CheckedOutputOptions, 'workers' | 'isWorkersDefault' | 'given'>>(
  name: string,
  entries: OptionTable,
  options: Pick<OutputOptions, 'workers'>,
  own: OwnChecks = {},
): Checked {
  const owner = { name, wrong: (given: string) => sentence`The option ${option(given)} is invalid` };
  const checked = checkGiven(owner, entries, options, { ...OWN_CHECKS, ...own });
  checkStorageOptions((checked as Pick<OutputOptions, 'storage'>).storage);
  const given = Object.entries(options).flatMap(([option, value]) => (value === undefined ? [] : [option]));
  const { workers } = options;
  const filledIn = { workers: workers ?? availableCores(), isWorkersDefault: workers === undefined, given };
  return { ...checked, ...filledIn } as unknown as Checked;
}

/** How images are re-encoded; null if their bytes are stored unchanged. */
export interface RecodeOptions {
  readonly resize: number | undefined;
  readonly quality: number;
  readonly imageFormat: ImageFormat | undefined;
}

type RecodeChoice = Pick<PackOptions, 'resize' | 'quality' | 'imageFormat'>;

export function recodeOptions(options: RecodeChoice): RecodeOptions | null {
  const { resize, quality, imageFormat } = options;
  if (resize === undefined && quality === undefined && imageFormat === undefined) return null;
  return { resize, quality: quality ?? PACK_DEFAULTS.quality, imageFormat };
}

/**
 * True if the stored bytes of a sample may differ from its file. The images of such a pack are not compared with the
 * dataset.
 */
export function changesBytes(options: RecodeChoice & Pick<PackOptions, 'stripMetadata'>): boolean {
  return recodeOptions(options) !== null || options.stripMetadata === true;
}

/** What is done to every image before it is written to its shard. */
export interface ImageStepOptions {
  /** Decodes the whole image, and rejects it if that fails. */
  readonly decode: boolean;
  readonly maxPixels: number;
  readonly stripMetadata: boolean;
  /** Null if images are not re-encoded. */
  readonly recode: RecodeOptions | null;
}

export function imageStepOptions(options: CheckedOptions): ImageStepOptions {
  const { check, maxPixels, stripMetadata } = options;
  return { decode: check === 'decode', maxPixels, stripMetadata, recode: recodeOptions(options) };
}

/** Limit for brace expansion: fast-glob expands braces to one pattern each, and keeps all of them in memory. */
const MAX_PATTERNS = 10_000;

function checkPatterns({ include, exclude }: Pick<CheckedOptions, 'include' | 'exclude'>): void {
  for (const pattern of [...include, ...exclude]) {
    const count = countBraces(pattern);
    if (count <= MAX_PATTERNS) continue;
    throw new OptionError(
      {},
      `The pattern ${JSON.stringify(pattern)} expands to ${count} patterns because of its braces, more than ${MAX_PATTERNS}; use * instead.`,
    );
  }
}
