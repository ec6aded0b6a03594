import { type CheckedValues, checkGiven, OptionError, type OwnChecks, optionName, sentence } from '@shardtool/base';
import { type AnnotationOptions, checkAnnotations } from '../annotations/options.js';
import { type BucketsInput, checkBuckets } from '../buckets/options.js';
import { formatOf, isBackground } from '../codec/pixel-format.js';
import type { Indices } from '../selection/custom-order.js';
import type { Weights } from '../selection/weights.js';
import { checkDrawnNames } from '../transform/drawn-steps.js';
import { checkMix, type MixInput } from '../transform/mixes/mix-option.js';
import { compileTransform, type TransformInput } from '../transform/transform.js';
import { checkViews, type ViewsInput } from '../views/options.js';
import { namedViews, type ViewPresetName, type ViewsFile } from '../views/presets.js';
import { FOREIGN_NAMES } from './foreign-names.js';
import { isMetricsOptions, type MetricsOptions } from './metrics/address.js';
import { LOADER_OPTIONS } from './option-table.js';
import { type CustomSteps, isCustomSteps } from './setup/custom-steps.js';
import { refuseImageOptions } from './setup/image-choice.js';
import { checkLabels, type LabelsInput } from './setup/labels-option.js';
import { checkSchedule, type ScheduledTransform } from './setup/transform-schedule.js';

/** Options of {@link Dataset.loader}. All are optional. */
export interface LoaderOptions {
  /** Rows of this rank's batches. Default 64. */
  readonly batchSize?: number | undefined;
  /** Rows of a batch over all ranks, instead of `batchSize`. */
  readonly globalBatchSize?: number | undefined;
  /**
   * A preset (`train224`, `timm/resnet50-a1`: see docs/recipes.md), a list of steps, a JSON file with one, or `raw`: images stay
   * encoded. Default: images are decoded as they are, which needs images of one size or `collate: 'list'`.
   */
  readonly transform?: TransformInput | 'raw' | undefined;
  /**
   * Other transforms for later epochs: `[{ epoch: 16, transform }, { epoch: 32, transform }]`. Epochs before the first
   * entry use `transform`. The batches of an epoch have the size that its transform sets. All transforms must produce
   * the same dtype and layout.
   */
  readonly schedule?: readonly ScheduledTransform[] | undefined;
  /**
   * Several views of each image from one decode, in named groups, instead of one `transform`: `{ global: { count: 2,
   * transform }, local: { count: 8, transform } }`. The value may also be the name of views such as `dinov2`, or a JSON
   * file. The result is `batch.views`.
   */
  readonly views?: ViewsInput | ViewPresetName | ViewsFile | undefined;
  /** With `views`: names of steps whose random values are in `batch.views` as well, such as `['randomResizedCrop']`. */
  readonly draws?: readonly string[] | undefined;
  /** Seed of the order and of all random numbers, together with the epoch. Default: 0. */
  readonly seed?: number | undefined;
  /** The first epoch. Default 0. */
  readonly epoch?: number | undefined;
  /**
   * Number of epochs per iteration. With a `state`, the first one is the resumed epoch, or the rest of it. Default: 1.
   * Infinity is allowed.
   */
  readonly epochsPerLoop?: number | undefined;
  /** Shuffles the samples; false keeps the order on disk. Default: true. */
  readonly shuffle?: boolean | undefined;
  /** The unit that is shuffled over the whole dataset. By default it depends on the sizes of the shards. */
  readonly shuffleUnit?: 'sample' | 'shard' | 'chunk' | undefined;
  /**
   * Number of streams that are read concurrently, over all ranks. Default: the least common multiple of 192 and
   * `worldSize`.
   */
  readonly streams?: number | undefined;
  /**
   * Number of samples in the shuffle buffers of all streams together. Default: the number that makes blocks of about 2
   * MiB.
   */
  readonly shuffleBufferSize?: number | undefined;
  /** Samples in a block of a stream, instead of `shuffleBufferSize`. */
  readonly blockSamples?: number | undefined;
  /**
   * Default: RANK and WORLD_SIZE (torchrun), LOCAL_RANK and WORLD_SIZE (Lightning), SLURM_PROCID and SLURM_NTASKS (srun), or else
   * 0 of 1. It is an error if two of these disagree.
   */
  readonly rank?: number | undefined;
  readonly worldSize?: number | undefined;
  /** How an incomplete last batch is handled. Default: `partial`. With more than one rank: `pad`. */
  readonly lastBatch?: 'pad' | 'drop' | 'partial' | undefined;
  /**
   * Number of samples in an epoch, taken from the endless sequence of passes. With `weights`, each sample gets a share of
   * this number by its weight.
   */
  readonly samplesPerEpoch?: number | undefined;
  /**
   * Repeated augmentation: each sample comes this many times in an epoch, with different random numbers, in consecutive
   * positions of the order. So with several ranks, they get different ones. `samplesPerEpoch` counts every repetition.
   * Not for mixtures, aspect-ratio buckets, groups of `indices` and `onBad: 'replace'`. Default: 1.
   */
  readonly repeats?: number | undefined;
  /** Only these classes: text is a name, a number is a class number. */
  readonly classes?: readonly (string | number)[] | undefined;
  /** Only these keys. */
  readonly keys?: readonly string[] | undefined;
  /** Only samples that match this expression over the columns of the index: `width >= 256 and cls in (3, 7)`. */
  readonly where?: string | undefined;
  /**
   * Relative frequency of samples: by class (1 if not given), by an array with a number for each sample of the open
   * dataset in the order on disk, or by a function. The number of samples in an epoch is the number of samples with a
   * weight above 0, or `samplesPerEpoch`. If that is the sum of whole weights, each sample occurs exactly as often as
   * its weight. Keys of a plain object are names. For class numbers, use a Map or a list of pairs: `[[3, 0.5], ['cat',
   * 2]]`.
   */
  readonly weights?: Weights | undefined;
  /**
   * A custom order: sample indices, counted from 0 in the order on disk, for every epoch and over all ranks (rank r of
   * w gets every w-th). An index may be repeated. Samples that are not next to each other on disk are read one by one.
   * For another order in each epoch, concatenate the orders of several epochs and set `samplesPerEpoch`. Groups of one
   * size, such as [[3, 8], [8, 1]], stay together: each goes to one rank and into one batch, in consecutive rows.
   */
  readonly indices?: Indices | undefined;
  /**
   * Number of decode workers. Default: the cores that the process may use (a container may limit them), divided by
   * LOCAL_WORLD_SIZE.
   */
  readonly workers?: number | undefined;
  /** Number of batch slots: batches that are prepared ahead, including the one that the consumer uses. Default: 4. */
  readonly prefetchBatches?: number | undefined;
  /** When to check the crc32 of delivered images, masks and fields. Default: `first-epoch`. */
  readonly checksum?: 'first-epoch' | 'always' | 'never' | undefined;
  /** `stack` (default): one array of images of one size. `list`: one array per image. */
  readonly collate?: 'stack' | 'list' | undefined;
  /**
   * The field that is the image. Default: the sample's first field of an image kind. false: batches have only fields,
   * and `.npy` fields are stacked as `batch.arrays`. That is also the default if the samples have no image.
   */
  readonly image?: string | false | undefined;
  /**
   * Image fields, for a varying number of images per sample: names, or patterns in which `*` stands for any characters, such
   * as `['img.*']`. All images of a batch are one array [total, height, width, channels]. Those of row i are `offsets[i]`
   * up to `offsets[i + 1]`. A sample may have no image. Each image has its own random numbers.
   */
  readonly images?: readonly string[] | undefined;
  /** With `images`: largest number of images of a sample; one with more is a bad sample. Default: the number of matching fields. */
  readonly maxImages?: number | undefined;
  /**
   * Further fields that are images of the same size. They are cropped, rotated and coloured like the image, and
   * delivered as `batch.extraImages`.
   */
  readonly extraImages?: readonly string[] | undefined;
  /**
   * Fields that are masks of the image's size (gray or palette PNG, uint8 npy). They are cropped, flipped and rotated
   * like the image, keep their values, and are delivered as `batch.masks`.
   */
  readonly masks?: readonly string[] | undefined;
  /**
   * Sources of boxes, keypoints and polygons on the image. They are transformed with the image, and are in
   * `batch.boxes`, `batch.boxLabels` and `batch.offsets`, `batch.keypoints` and `batch.polygons`.
   */
  readonly annotations?: AnnotationOptions | undefined;
  /**
   * Custom code that runs in the workers: on the fields of a sample before they are decoded, on its finished pixels, or
   * on the whole batch. If a step returns null for a sample, the sample is dropped, and the next sample of its block
   * takes its row.
   */
  readonly customSteps?: CustomSteps | undefined;
  /**
   * Mixes each image with others of its batch, for `mosaic` with their boxes and masks. `batch.mix` describes the
   * result. If there are several, one is chosen per batch. `{ name: 'sequence', mixes: [...] }` applies several, one
   * after another.
   */
  readonly mix?: MixInput | readonly MixInput[] | undefined;
  /**
   * Labels from a field or column instead of class numbers: numbers for regression, or, with `classes`, lists of class
   * numbers. The result is `batch.labelValues`.
   */
  readonly labels?: string | LabelsInput | undefined;
  /**
   * Fields and label columns that are delivered as arrays of values. Default: all fields that are neither image nor
   * class, and no columns.
   */
  readonly fields?: readonly string[] | undefined;
  /**
   * `random` chooses one of several captions per epoch, if a field contains a JSON list of texts, or lines of text.
   * Default: fields are delivered unchanged.
   */
  readonly captionSampling?: 'random' | undefined;
  /**
   * How a bad sample is handled: `raise` throws, `skip` marks its row as not valid, and `replace` puts the next good
   * sample of the same block into its row. Default: `raise`.
   */
  readonly onBad?: 'raise' | 'skip' | 'replace' | undefined;
  /** Images with more pixels are bad samples. Default: 178,956,970, as in Pillow. */
  readonly maxPixels?: number | undefined;
  /**
   * Channels of decoded images: 1 is luma (JPEGs decode no colour at all), 3 RGB, 4 RGB and alpha; any other number for
   * arrays and TIFFs with that number of channels. Default: 3. Part of a state.
   */
  readonly channels?: number | undefined;
  /**
   * Type of decoded values, before `toDtype` and `normalize`. Values are not scaled. Default: `uint8`. Part of a state.
   */
  readonly pixelDtype?: 'uint8' | 'uint16' | 'int16' | 'float32' | undefined;
  /**
   * Background colour for transparent pixels, 0 to 255 or [red, green, blue]. Default: alpha is dropped, as by Pillow's
   * `convert('RGB')`.
   */
  readonly background?: number | readonly number[] | undefined;
  /**
   * The size at which JPEGs are decoded. `exact`: full size, so that resized pixels are equal to Pillow's. `scaled`
   * (default): at 1/2, 1/4 or 1/8 of their size if that is at least twice the size that the transform needs; pixels
   * differ by some levels. `fast`: if that is at least the size that the transform needs. docs/transforms.md compares
   * speed and quality. Part of a state.
   */
  readonly decode?: 'exact' | 'scaled' | 'fast' | undefined;
  /**
   * Rotates images by their EXIF orientation, or by that of their XMP if EXIF has none. Default: false, as in
   * torchvision. With `aspectBuckets`: true.
   */
  readonly applyExifOrientation?: boolean | undefined;
  /**
   * Decodes crops of JPEGs with the crop indexes of the shards, if they have any (`pack --index crops`). This is faster
   * and gives the same pixels. Default: true on fast local storage. On slow or remote storage false, because a crop
   * index adds bytes to fetch.
   */
  readonly cropIndex?: boolean | undefined;
  /**
   * Batches of several sizes. All images of a batch have one size. An image gets the size whose aspect ratio is
   * nearest; it is resized to cover this size, and cropped. A rule (`{ area: 1024 * 1024, step: 64, maxRatio: 2 }`) or
   * a list of [height, width]. The transform must not set a size.
   */
  readonly aspectBuckets?: BucketsInput | undefined;
  /**
   * With `aspectBuckets`: maximum memory for encoded samples that wait for their batch outside of their blocks. Above
   * it, the samples that have waited longest are dropped and read again. Default: 256 MiB.
   */
  readonly holdBytes?: number | string | undefined;
  /**
   * Maximum memory for encoded samples, in bytes or as a text such as `4GiB`. Default: half of the machine's memory. If
   * batches consist of images alone and the shards are on a local disk, there are no read buffers by default: workers
   * read the images out of the system's page cache.
   */
  readonly readBufferBytes?: number | string | undefined;
  /**
   * Number of blocks that are read at a time. Default: 4 on a local disk. Otherwise it is raised as long as that
   * increases the rate.
   */
  readonly readConcurrency?: number | undefined;
  /**
   * A folder on a local disk (or in memory) for fetched data. All processes and datasets can share it. It evicts what
   * will be needed furthest in the future.
   */
  readonly cache?: string | undefined;
  /** Maximum size of the cache, for all processes together: a number of bytes or a text such as `200GB`. Default: half of the free space. */
  readonly cacheSize?: number | string | undefined;
  /**
   * Serves metrics for Prometheus at `http://127.0.0.1:PORT/metrics` while the loader is open. The port of a process is the sum of
   * `port` and its local rank. Default: `SHARDTOOL_METRICS`, such as `:9464`; without it, nothing is served or sent. `otlp`: sends them to
   * `OTEL_EXPORTER_OTLP_ENDPOINT` instead. With a port, they are sent too if that variable is set. false: ignore both variables.
   */
  readonly metrics?: MetricsOptions | 'otlp' | false | undefined;
  /**
   * false (default): batches are yours to keep, and each is copied once. true: no copy; the images of a batch are
   * overwritten when the next one is requested. `manual`: no copy; they are overwritten after `batch.release()`.
   */
  readonly reuse?: boolean | 'manual' | undefined;
  /**
   * Descriptor of an open file, preferably one without a name (a memfd). Its memory becomes the memory of the batch
   * slots, so that a process that maps the file reads batches without a copy, each at its `images.byteOffset`. The file
   * grows as needed.
   */
  readonly slotFile?: number | undefined;
  /** Resumes from a state that {@link Loader.state} returned. `epochsPerLoop` counts from its epoch. */
  readonly state?: unknown;
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

type Table = typeof LOADER_OPTIONS;
/** Names of the options for whose values the table has no kind. */
type OwnNames = { [Name in keyof Table]: Table[Name] extends { kind: 'own' } ? Name : never }[keyof Table];

/** {@link LoaderOptions}, checked and with their defaults. */
export type CheckedOptions = Omit<CheckedValues<Table>, OwnNames> & {
  readonly [Name in Exclude<OwnNames, 'customSteps' | 'reuse' | 'views'>]: LoaderOptions[Name] | undefined;
} & { readonly views: ViewsInput | undefined; readonly customSteps: CustomSteps; readonly reuse: boolean | 'manual' };

const OWNER = {
  name: 'A loader',
  wrong: (name: string) => sentence`The loader's option ${optionName(name)} is invalid`,
  foreignNames: FOREIGN_NAMES,
};
const OWN_CHECKS: Readonly<Record<OwnNames, OwnChecks[string]>> = {
  schedule: (value) => Array.isArray(value),
  views: (value) => typeof value === 'string' || (typeof value === 'object' && value !== null && !Array.isArray(value)),
  transform: (value) => typeof value === 'string' || Array.isArray(value),
  weights: isWeights,
  indices: (value) => isNumbers(value) || (Array.isArray(value) && value.length > 0 && value.every(isNumbers)),
  annotations: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  customSteps: isCustomSteps,
  aspectBuckets: (value) => typeof value === 'object' && value !== null,
  mix: (value) => typeof value === 'object' && value !== null,
  metrics: isMetricsOptions,
  background: isBackground,
  image: isImageChoice,
  labels: (value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
  reuse: (value) => typeof value === 'boolean' || value === 'manual',
  state: () => true,
  signal: (value) => value instanceof AbortSignal,
};

/**
 * Fills in defaults and checks the transform. Throws {@link OptionError} with the option or step, and the allowed
 * values.
 */
export function checkOptions(options: LoaderOptions): CheckedOptions {
  const {
    customSteps = {},
    reuse = false,
    views: given,
    ...checked
  } = checkGiven(OWNER, LOADER_OPTIONS, options, OWN_CHECKS) as Omit<CheckedOptions, 'views'> &
    Pick<LoaderOptions, 'views'>;
  const { transform, schedule, mix, annotations, aspectBuckets } = checked;
  const format = formatOf(checked);
  if (transform !== undefined && transform !== 'raw') compileTransform(transform, format);
  if (schedule !== undefined) checkSchedule(schedule, format);
  const views = typeof given === 'string' ? namedViews(given) : given;
  if (views !== undefined) checkViews(views, format);
  checkDrawnNames(checked.draws);
  checkMix(mix);
  if (checked.labels !== undefined) checkLabels(checked.labels);
  if (annotations !== undefined) checkAnnotations(annotations);
  if (checked.image === false) refuseImageOptions({ ...checked, views, customSteps });
  if (aspectBuckets !== undefined) checkBuckets(aspectBuckets);
  if (checked.slotFile !== undefined && reuse === false) {
    throw new OptionError(
      {},
      sentence`With ${optionName('slotFile')}, batches are stored in that file, so their memory is reused: set reuse to true or "manual".`,
    );
  }
  return { ...checked, views, customSteps, reuse };
}

function isWeights(value: unknown): boolean {
  if (Array.isArray(value) && typeof value[0] === 'object') {
    return value.every((pair) => Array.isArray(pair) && pair.length === 2);
  }
  if (Array.isArray(value)) return isNumbers(value);
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** Whether a value may be the option `image`. */
export function isImageChoice(value: unknown): boolean {
  return value === false || (typeof value === 'string' && value !== '');
}

function isNumbers(value: unknown): boolean {
  if (ArrayBuffer.isView(value)) return 'length' in value && typeof value.length === 'number' && !isBigInts(value);
  return Array.isArray(value) && value.every((entry) => typeof entry === 'number');
}

function isBigInts(value: ArrayBufferView): boolean {
  return value instanceof BigInt64Array || value instanceof BigUint64Array;
}
