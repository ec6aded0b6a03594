import { didYouMean, OptionError } from '@shardtool/format';
import { parseSize } from '@shardtool/storage';
import { z } from 'zod';
import type { Weights } from '../selection/weights.js';
import { checkMixing, type MixInput } from '../transform/mix.js';
import { compileTransform, type TransformInput } from '../transform/transform.js';
import type { OwnSteps } from './work/own-steps.js';

/** What {@link Dataset.loader} takes. Everything is optional. */
export interface LoaderOptions {
  /** Rows of this rank's batches. Default 64. */
  readonly batchSize?: number;
  /** Rows of a batch over all ranks, instead of `batchSize`. */
  readonly globalBatchSize?: number;
  /**
   * A preset (`train224`, `eval224`), a list of steps, or `raw`: images stay encoded. Default: images are decoded as
   * they are, which needs images of one size or `collate: 'list'`.
   */
  readonly transform?: TransformInput | 'raw';
  /** Default 0. With the epoch it decides the order and every random number. */
  readonly seed?: number;
  /** The first epoch. Default 0. */
  readonly epoch?: number;
  /** Epochs that one iteration goes through. Default 1; Infinity is allowed. */
  readonly repeat?: number;
  /** Default true. False: the order on disk. */
  readonly shuffle?: boolean;
  /** Forces the unit of the shuffle; by default it follows from the sizes. */
  readonly shuffleUnit?: 'sample' | 'shard' | 'chunk';
  /** Streams that are read at once over all ranks. Default: the least common multiple of 192 and `worldSize`. */
  readonly streams?: number;
  /** Samples in the shuffle buffers of all streams together. Default: as many as make blocks of about 2 MiB. */
  readonly shuffleBufferSize?: number;
  /** Samples in a block of a stream, instead of `shuffleBufferSize`. */
  readonly blockSamples?: number;
  /** Default: RANK and WORLD_SIZE, else SLURM_PROCID and SLURM_NTASKS, else 0 of 1. */
  readonly rank?: number;
  readonly worldSize?: number;
  /** What becomes of an incomplete last batch. Default `partial` alone, `pad` with more than one rank. */
  readonly lastBatch?: 'pad' | 'drop' | 'partial';
  /** An epoch is exactly this many samples of the endless sequence of passes. */
  readonly epochSamples?: number;
  /** Only these classes: text is a name, a number is a class number. */
  readonly classes?: readonly (string | number)[];
  /** Only these keys. */
  readonly keys?: readonly string[];
  /** Only samples for which this holds, over the columns of the index: `width >= 256 and cls in (3, 7)`. */
  readonly where?: string;
  /**
   * How often a sample comes in an epoch, by class or by a function of its key and class. The keys of a plain object are names;
   * class numbers go into a Map or a list of pairs: `[[3, 0.5], ['cat', 2]]`.
   */
  readonly weights?: Weights;
  /** Decode workers. Default: the number of cores. */
  readonly workers?: number;
  /** Batch slots: batches that are made ahead, the consumer's included. Default 4. */
  readonly prefetchBatches?: number;
  /** Whether the crc32 of each image, mask and field that is delivered is checked. Default `first-epoch`. */
  readonly checksum?: 'first-epoch' | 'always' | 'never';
  /** `stack` (default): one array of images of one size. `list`: an array for each image. */
  readonly collate?: 'stack' | 'list';
  /** The field that is the image. Default: the sample's first field of an image kind. */
  readonly image?: string;
  /**
   * Further fields that are images of the same size: they are cropped, turned and coloured as the image is, and come as
   * `batch.moreImages`.
   */
  readonly moreImages?: readonly string[];
  /**
   * Fields that are masks of the image's size (gray or palette PNG, uint8 npy): they share its crop, flips and rotation, keep
   * their values, and come as `batch.masks`.
   */
  readonly masks?: readonly string[];
  /**
   * Your own code, which runs in the workers: on the fields of a sample before they are decoded, on its finished pixels, on
   * the whole batch. A step that returns null for a sample leaves it out: the next one of its block takes its row.
   */
  readonly steps?: OwnSteps;
  /** Mixes each image with the one before it, and says how in `batch.mix`. Of several, each batch gets one. */
  readonly mix?: MixInput | readonly MixInput[];
  /**
   * Fields, and columns that came with the labels, that come along as arrays of values. Default: all fields that are neither
   * image nor class, and no columns.
   */
  readonly fields?: readonly string[];
  /**
   * `random` takes one of several captions: of a field that holds a JSON list of texts, or lines, each epoch draws one. Default: all
   * come, as they are stored.
   */
  readonly textChoice?: 'random';
  /** Default `raise`. `skip` marks the row not valid, `substitute` takes the next good sample of the same block. */
  readonly onBadSample?: 'raise' | 'skip' | 'substitute';
  /** Images of more pixels are bad samples. Default 178,956,970, as in Pillow. */
  readonly maxPixels?: number;
  /**
   * How large JPEGs are decoded. `exact`: whole, so that resized pixels are those of Pillow. `scaled` (default): at 1/2, 1/4 or
   * 1/8 of their size where at least twice the size is left that the transform makes of them, within some levels. `fast`: where
   * at least that size is left. docs/transforms.md has what each gives and costs. Part of a state.
   */
  readonly decode?: 'exact' | 'scaled' | 'fast';
  /** Turns images as their EXIF orientation says. Default false, as in torchvision. */
  readonly applyExifOrientation?: boolean;
  /**
   * Decodes crops of JPEGs by the crop indexes of shards that have them (`pack --crop-index`): the pixels are the same,
   * sooner. Default: where reads are quick, since a crop index is more to fetch. true: also from afar; false: never.
   */
  readonly cropIndex?: boolean;
  /** Most memory for encoded samples, in bytes. Default: half of the machine's memory. */
  readonly readBufferBytes?: number;
  /** Blocks that are being read at once. Default: 4 on a local disk, elsewhere as many as still bring more bytes a second. */
  readonly readConcurrency?: number;
  /**
   * A folder on a disk of this machine (or in its memory) that keeps what was fetched, for all processes and all datasets.
   * What is needed last goes first.
   */
  readonly cache?: string;
  /** Most bytes in it, all processes together: a number, or text as `200GB`. Default: half of what is free. */
  readonly cacheSize?: number | string;
  /** `auto` (default): a batch is valid until the next is asked for. `manual`: until `batch.release()`. */
  readonly release?: 'auto' | 'manual';
  /**
   * Descriptor of an open file, best one without a name (a memfd), whose memory the batch slots become: whoever maps the
   * file sees the batches without a copy, each from its `images.byteOffset` on. The file grows to what is needed.
   */
  readonly slotFile?: number;
  /** Goes on where {@link Loader.state} was taken. */
  readonly state?: unknown;
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal;
}

const count = z.number().int().positive();
const step = z.strictObject({
  module: z.string().min(1),
  export: z.string().optional(),
  options: z.unknown().optional(),
});

function isWeights(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((pair) => Array.isArray(pair) && pair.length === 2);
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

function parseCacheSize(text: string, context: z.RefinementCtx): number {
  const bytes = parseSize(text);
  if (bytes !== undefined && bytes > 0) return bytes;
  context.addIssue({ code: 'custom', message: 'it is a number of bytes, or text as 200GB' });
  return z.NEVER;
}

const schema = z.strictObject({
  batchSize: count.optional(),
  globalBatchSize: count.optional(),
  transform: z
    .custom<TransformInput | 'raw'>(
      (value) => typeof value === 'string' || Array.isArray(value),
      "it is a list of steps, 'train224', 'eval224' or 'raw'",
    )
    .optional(),
  seed: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  epoch: z.number().int().min(0).max(0xffffffff).optional(),
  repeat: z.union([count, z.literal(Number.POSITIVE_INFINITY)]).default(1),
  shuffle: z.boolean().optional(),
  shuffleUnit: z.enum(['sample', 'shard', 'chunk']).optional(),
  streams: count.max(65_536).optional(),
  shuffleBufferSize: count.optional(),
  blockSamples: count.optional(),
  rank: z.number().int().min(0).optional(),
  worldSize: count.optional(),
  lastBatch: z.enum(['pad', 'drop', 'partial']).optional(),
  epochSamples: count.optional(),
  classes: z.array(z.union([z.string(), z.number().int()])).optional(),
  keys: z.array(z.string()).optional(),
  where: z.string().optional(),
  weights: z
    .custom<Weights>(isWeights, 'it is { cat: 2 }, a Map or a list of pairs of class and weight, or a function')
    .optional(),
  workers: count.max(1024).optional(),
  prefetchBatches: count.default(4),
  checksum: z.enum(['first-epoch', 'always', 'never']).default('first-epoch'),
  collate: z.enum(['stack', 'list']).default('stack'),
  image: z.string().optional(),
  steps: z.strictObject({ fields: step.optional(), pixels: step.optional(), batch: step.optional() }).default({}),
  mix: z
    .custom<MixInput | readonly MixInput[]>(
      (value) => typeof value === 'object',
      "it is { name: 'mixup' or 'cutmix', alpha }, or a list of those",
    )
    .optional(),
  moreImages: z.array(z.string()).default([]),
  masks: z.array(z.string()).default([]),
  fields: z.array(z.string()).optional(),
  textChoice: z.enum(['random']).optional(),
  onBadSample: z.enum(['raise', 'skip', 'substitute']).default('raise'),
  maxPixels: count.default(178_956_970),
  decode: z.enum(['exact', 'scaled', 'fast']).optional(),
  applyExifOrientation: z.boolean().default(false),
  cropIndex: z.boolean().optional(),
  readBufferBytes: count.optional(),
  readConcurrency: count.optional(),
  cache: z.string().min(1).optional(),
  cacheSize: z.union([count, z.string().transform(parseCacheSize)]).optional(),
  release: z.enum(['auto', 'manual']).default('auto'),
  slotFile: z.number().int().min(0).optional(),
  state: z.unknown().optional(),
  signal: z.instanceof(AbortSignal).optional(),
});

export type CheckedOptions = z.output<typeof schema>;

/**
 * Fills in the defaults, and looks at the transform. Throws {@link OptionError} that names the option, or the step, and what is
 * allowed.
 */
export function checkOptions(options: LoaderOptions): CheckedOptions {
  const result = schema.safeParse(options);
  if (!result.success) throw wrongOption(result.error.issues[0]!);
  const { transform, mix } = result.data;
  if (transform !== undefined && transform !== 'raw') compileTransform(transform);
  checkMixing(mix);
  return result.data;
}

function wrongOption(issue: z.core.$ZodIssue): OptionError {
  const unknown = issue.code === 'unrecognized_keys' && issue.path.length === 0 ? issue.keys[0] : undefined;
  if (unknown !== undefined) {
    const names = Object.keys(schema.shape);
    return new OptionError(
      {},
      `A loader has no option "${unknown}"${didYouMean(unknown, names) || `; there are ${names.join(', ')}.`}`,
    );
  }
  return new OptionError(
    {},
    `The loader's option ${issue.path.join('.') || 'options'} is not right: ${issue.message}.`,
  );
}
