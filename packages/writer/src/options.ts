import { availableParallelism } from 'node:os';
import {
  type CheckedValues,
  checkGiven,
  defaultsOf,
  OptionError,
  type OptionTable,
  type OwnChecks,
} from '@shardtool/base';
import type { OutputLayoutName, WrittenLayoutName } from '@shardtool/format';
import { countBraces, type StorageOptions } from '@shardtool/storage';
import { CONVERT_OPTIONS, OUTPUT_OPTIONS, PACK_OPTIONS, WRITER_OPTIONS } from './option-table.js';
import { Naming } from './plan/naming.js';
import type { LmdbValues } from './shard/layout-choice.js';
import type { OtherIndex } from './shard/other-indexes.js';

/** What is written, and how: packing and converting have these options in common. */
export interface OutputOptions {
  /** Kind of the shard files. */
  format?: WrittenLayoutName | undefined;
  /** What an LMDB shard holds under a key: `sample`, a map of all fields, or `image`, the image and nothing else. */
  lmdbValues?: LmdbValues | undefined;
  /** Indexes for other loaders, which need tars: `wids` of webdataset, `dali` of NVIDIA DALI. */
  index?: readonly OtherIndex[] | undefined;
  /** Upper limit of a shard in bytes as a tar; with re-encoding it counts the source's bytes. */
  maxShardBytes?: number | undefined;
  /** Upper limit of a shard in samples. */
  maxShardSamples?: number | undefined;
  /** A sample of more bytes, all its fields together, is an error. A tar takes larger fields piece by piece. */
  maxSampleBytes?: number | undefined;
  /** In front of the shards' numbers: `train` gives `train-000000.tar`. */
  name?: string | undefined;
  /** Worker threads. They change the time it takes, never a byte of the result. Default: the number of cores; none where there is little to do. */
  workers?: number | undefined;
  /**
   * Folder on this machine for shards on their way to a bucket: a few shards, whatever the size of the dataset. The system's
   * temporary folder (TMPDIR) without it.
   */
  staging?: string | undefined;
  /** Removes what an earlier pack left in the output folder, and nothing else. */
  overwrite?: boolean | undefined;
  /** Called some ten times a second. */
  onProgress?: ((progress: PackProgress) => void) | undefined;
  /** Ends the work; shards that are finished stay. */
  signal?: AbortSignal | undefined;
  /** How remote locations are asked. What is omitted comes from the environment. */
  storage?: StorageOptions | undefined;
}

/** How a pack is done. Everything may be left out; {@link PACK_DEFAULTS} says what then holds. */
export interface PackOptions extends OutputOptions {
  /** Of the order in which samples are laid into shards; 0 to 2^53 - 1. */
  seed?: number | undefined;
  /** False keeps the order of the paths. */
  shuffle?: boolean | undefined;
  /** The classes in the order of their numbers: their names, or a text file with one name a line. */
  classes?: string | readonly string[] | undefined;
  /**
   * CSV with a header row, or JSON Lines: `path`, `class` if it has one, and further columns for the index. Without it a
   * `metadata.csv` or `metadata.jsonl` in the source with a column `file_name` is taken, whose class is called `label`.
   */
  labels?: string | undefined;
  /** Stops with an error if an image of the source has no row in `labels` or `coco`. Without it such images are left out and counted. */
  requireLabels?: boolean | undefined;
  /** Counts rows of `labels` or `coco` without a file, and lists them in skipped.jsonl. Without it they are bad files. */
  allowMissingFiles?: boolean | undefined;
  /**
   * Packs `train`, `val` and `test` below the source, or what else such parts are called, each to a dataset of that name below
   * the output, all with one list of classes.
   */
  splits?: boolean | undefined;
  /**
   * A JSON file of COCO's annotations: `file_name` is a path below the source. Each image gets its objects as the field `json`, and
   * the categories, in the order of their ids, become the classes that their labels count in.
   */
  coco?: string | undefined;
  /**
   * YOLO's `data.yaml`, or a text file with one class name a line: each image gets the objects of its label file
   * (`labels/a.txt` of `images/a.jpg`) as the field `json`, in parts of the image's sides.
   */
  yolo?: string | undefined;
  /** The files to be packed instead of the whole folder: their paths, or a text file with one path a line. */
  files?: string | readonly string[] | undefined;
  /**
   * Endings of files that belong to the image with the same stem, also where they are images themselves: `seg.png`; with
   * `_mask.png`, 1_mask.png becomes the field mask.png of 1.jpg.
   */
  fields?: readonly string[] | undefined;
  /**
   * Folders whose files belong to images elsewhere: with `masks=seg.png` masks/cat/1.png becomes the field seg.png of
   * images/cat/1.jpg, which lies in any folder beside it, or of cat/1.jpg.
   */
  pair?: readonly string[] | undefined;
  /** Glob patterns below the source; only what fits one of them is packed. */
  include?: readonly string[] | undefined;
  /** Glob patterns below the source; what fits one of them is not packed. */
  exclude?: readonly string[] | undefined;
  /** Shorter side of the images in pixels; smaller images stay as they are. */
  resize?: number | undefined;
  /** Of re-encoded JPEG and WebP, 1 to 100. */
  quality?: number | undefined;
  /** Re-encodes every image as this. */
  imageFormat?: ImageFormat | undefined;
  /** What is looked at in every image: its header (kind, size), or all of it by decoding it, which finds what is cut or damaged. */
  check?: 'header' | 'decode' | undefined;
  /** Images whose shorter side has fewer pixels count as bad. */
  minSize?: number | undefined;
  /** Images that have, or claim, more pixels count as bad. */
  maxPixels?: number | undefined;
  /** Takes Exif, XMP, IPTC, comments and thumbnails out, without encoding the image again; colours and orientation stay. Damaged images stay as they are. */
  stripMetadata?: boolean | undefined;
  /**
   * Packs images with the same bytes once: the first by its path stands for the others, which duplicates.jsonl lists.
   * With `append` an image of the dataset stands for new ones with its bytes. Where packing changes the bytes (`resize`,
   * `quality`, `imageFormat`, `stripMetadata`) the new images are compared with each other only.
   */
  dedupe?: boolean | undefined;
  /** What becomes of a file that cannot be packed: end with an error, or list it in quarantine.jsonl. */
  onBad?: 'stop' | 'quarantine' | undefined;
  /** The share of samples that may be bad before the pack ends with an error. */
  maxBad?: number | undefined;
  /** Paths, sizes and times of the source's files lie in memory up to so many bytes while a pack is planned, and on the disk beyond. */
  planMemory?: number | undefined;
  /**
   * So many files are asked for at a time. Without it, a source on a disk of this machine that answers at once is read by
   * as many workers as there are, and any other by up to 256 calls at a time, as many as give the highest rate.
   */
  inFlight?: number | undefined;
  /** Where the file system of a source that is not on a disk of this machine does not answer for so many seconds, the pack ends. */
  ioTimeout?: number | undefined;
  /** Only plans: scans, measures, and reports what a pack would make. */
  dryRun?: boolean | undefined;
  /** Throws away what a pack that did not end has made, and begins anew. Without it such a pack goes on. */
  restart?: boolean | undefined;
  /** Reads the shards that were finished earlier again, and does not only look at their sizes and indexes. */
  recheck?: boolean | undefined;
  /**
   * Adds shards for the images that the dataset in the output folder does not have yet, by their paths. Its shards stay
   * as they are, and so do the numbers of its classes; options that are left out are those of the dataset.
   */
  append?: boolean | undefined;
  /** Packs a part of the shards: `3/16` for the third of 16 parts, which may run side by side, on many machines. */
  part?: string | undefined;
}

/** `npy` is an uncompressed image: a uint8 array of NumPy, height x width x 3. */
export type ImageFormat = 'jpg' | 'png' | 'webp' | 'npy';

/** How far a pack is. `bytes` counts the source's. */
export interface PackProgress {
  readonly stage: 'scan' | 'measure' | 'dedupe' | 'pack' | 'convert' | 'commit';
  readonly files: number;
  /** 0 while scanning, when it is not known yet. */
  readonly totalFiles: number;
  readonly bytes: number;
  readonly totalBytes: number;
}

/** What holds where {@link PackOptions} leaves something out. `quality` does so only where images are encoded anew. */
export const PACK_DEFAULTS = {
  ...defaultsOf(OUTPUT_OPTIONS),
  ...defaultsOf(PACK_OPTIONS),
  quality: Number(PACK_OPTIONS.quality.shown),
};

/** For programs alone. */
const PROGRAM_OPTIONS = {
  onProgress: {
    kind: 'own',
    type: '(progress: PackProgress) => void',
    must: 'is a function',
    help: 'Called as work goes on',
  },
  signal: { kind: 'own', type: 'AbortSignal', must: 'is an AbortSignal', help: 'Ends the work' },
  storage: { kind: 'own', type: 'StorageOptions', must: 'is an object', help: 'How remote locations are asked' },
} as const satisfies OptionTable;
const OWN_CHECKS: OwnChecks = {
  onProgress: (value) => typeof value === 'function',
  signal: (value) => value instanceof AbortSignal,
  storage: (value) => typeof value === 'object' && value !== null,
};
const OUTPUT_TABLE = { ...OUTPUT_OPTIONS, ...PROGRAM_OPTIONS };
const PACK_TABLE = { ...OUTPUT_TABLE, ...PACK_OPTIONS };

/** {@link OutputOptions}, checked and complete. */
export type CheckedOutputOptions = Omit<CheckedValues<typeof OUTPUT_OPTIONS>, 'workers'> &
  Pick<OutputOptions, 'onProgress' | 'signal' | 'storage'> & {
    readonly workers: number;
    /** Nobody said how many: where the work is small this thread does it. */
    readonly isWorkersDefault: boolean;
  };
/** {@link PackOptions}, checked and complete. */
export type CheckedOptions = CheckedOutputOptions & CheckedValues<typeof PACK_OPTIONS>;

/** Checks the options and fills in what was left out. Throws {@link OptionError} with the name of the first wrong one. */
export function checkOptions(options: PackOptions): CheckedOptions {
  const { fields, ...given } = complete<CheckedOptions>('A pack', PACK_TABLE, options);
  const checked = { ...given, fields: fields.map((field) => field.toLowerCase()) };
  new Naming(checked);
  checkPatterns(checked);
  if (checked.files !== undefined && (options.include !== undefined || options.exclude !== undefined)) {
    throw new OptionError({}, 'The option "files" names every file; leave "include" and "exclude" out beside it.');
  }
  if (checked.coco !== undefined && checked.resize !== undefined) {
    const message =
      'The option "resize" would shrink the images and leave the boxes of "coco" as they are, in pixels; pack without it, and resize in the loader, which moves boxes with their image.';
    throw new OptionError({}, message);
  }
  const other = (['part', 'overwrite', 'dryRun'] as const).find((name) => checked[name]);
  if (checked.append && other !== undefined) {
    throw new OptionError(
      {},
      `The option "append" adds to a dataset, which "${other}" cannot be beside; leave one out.`,
    );
  }
  const clears = (['overwrite', 'restart'] as const).find((name) => checked[name]);
  if (checked.part !== undefined && clears !== undefined) {
    const message = `A part does not know what others have packed already; leave "${clears}" out, and empty the folder before the first part begins.`;
    throw new OptionError({}, message);
  }
  return checked;
}

/** The same for a conversion, which writes more kinds of shards. */
export type CheckedConvertOptions = Omit<CheckedOutputOptions, 'format'> & { readonly format: OutputLayoutName };

export function checkConvertOptions(options: ConvertedOptions): CheckedConvertOptions {
  const { format } = CONVERT_OPTIONS;
  return complete<CheckedConvertOptions>('A conversion', { ...OUTPUT_TABLE, format }, options);
}

type ConvertedOptions = Omit<OutputOptions, 'format'> & { readonly format?: OutputLayoutName | undefined };

/** The same for a writer of samples from code. */
export function checkWriterOptions(
  options: OutputOptions & { readonly part?: string | undefined },
): CheckedWriterOptions {
  return complete<CheckedWriterOptions>('A writer', { ...OUTPUT_TABLE, ...WRITER_OPTIONS }, options);
}

type CheckedWriterOptions = CheckedOutputOptions & CheckedValues<typeof WRITER_OPTIONS>;

/** The options of the table, checked, with the workers that this machine is good for. */
function complete<Checked extends Pick<CheckedOutputOptions, 'workers' | 'isWorkersDefault'>>(
  name: string,
  entries: OptionTable,
  options: Pick<OutputOptions, 'workers'>,
): Checked {
  const owner = { name, wrong: (option: string) => `The option "${option}" does not fit` };
  const checked = checkGiven(owner, entries, options, OWN_CHECKS);
  const isWorkersDefault = options.workers === undefined;
  return { ...checked, workers: options.workers ?? availableParallelism(), isWorkersDefault } as unknown as Checked;
}

/** How images are re-encoded; null where their bytes pass through untouched. */
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

/** Whether the bytes of a sample may be others than those of its file: such a pack is not compared with its dataset. */
export function changesBytes(options: RecodeChoice & Pick<PackOptions, 'stripMetadata'>): boolean {
  return recodeOptions(options) !== null || options.stripMetadata === true;
}

/** What is done to every image before it goes into its shard. */
export interface ImageStepOptions {
  /** Decodes it whole, and refuses it where that does not work. */
  readonly decode: boolean;
  readonly maxPixels: number;
  readonly stripMetadata: boolean;
  /** Null where it is not encoded anew. */
  readonly recode: RecodeOptions | null;
}

export function imageStepOptions(options: CheckedOptions): ImageStepOptions {
  const { check, maxPixels, stripMetadata } = options;
  return { decode: check === 'decode', maxPixels, stripMetadata, recode: recodeOptions(options) };
}

/** fast-glob makes a pattern of each that braces stand for, and holds them all. */
const MOST_PATTERNS = 10_000;

function checkPatterns({ include, exclude }: Pick<CheckedOptions, 'include' | 'exclude'>): void {
  for (const pattern of [...include, ...exclude]) {
    const count = countBraces(pattern);
    if (count <= MOST_PATTERNS) continue;
    throw new OptionError(
      {},
      `The pattern ${JSON.stringify(pattern)} stands for ${count} patterns by its braces, and at most ${MOST_PATTERNS} are taken; use * instead.`,
    );
  }
}
