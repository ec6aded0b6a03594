/**
 * The options of a loader, each in one place: what it may be, what holds where it is left out, what it does, and where else it
 * goes by which name. The checks (options.ts), the flags of the commands that read, and docs/loader-options.md are made of this
 * table; a test compares it with {@link LoaderOptions} and with the typed dictionary of Python.
 */
import type { OptionEntry } from '@shardtool/format';

/** A command that makes batches, or says what making them will cost. */
export type ReadingCommand = 'bench' | 'plan' | 'preview';

/** One of them. */
export type LoaderOption = OptionEntry & {
  /** The commands that have it as a flag. */
  readonly commands?: readonly ReadingCommand[];
  /** The flag, where it is not the name in kebab case. */
  readonly flag?: string;
  /** False: Python does it in another way. Text: its type there, where that is another than its kind says. */
  readonly python?: string | false;
};

export const LOADER_OPTIONS = {
  batchSize: { kind: 'whole', from: 1, shown: '64', commands: ['bench', 'plan'], help: "Rows of this rank's batches" },
  globalBatchSize: { kind: 'whole', from: 1, help: 'Rows of a batch over all ranks, instead of `batchSize`' },
  transform: {
    kind: 'own',
    type: "TransformInput | 'raw'",
    must: "is a list of steps, 'train224', 'eval224' or 'raw'",
    python: 'Transform',
    shown: 'images are decoded as they are',
    help: 'What becomes of images: a preset, a list of steps (docs/transforms.md), or `raw`: they stay encoded',
  },
  seed: {
    kind: 'whole',
    from: 0,
    shown: '0',
    commands: ['bench', 'preview'],
    help: 'With the epoch it decides the order and every random number',
  },
  epoch: { kind: 'whole', from: 0, to: 0xffffffff, shown: '0', commands: ['preview'], help: 'The first epoch' },
  repeat: {
    kind: 'whole',
    from: 1,
    isEndless: true,
    default: 1,
    python: 'float',
    help: 'Epochs that one loop goes through; with a `state` the resumed epoch, or what is left of it, is the first of them',
  },
  shuffle: { kind: 'switch', shown: 'true', help: 'False: the order on disk' },
  shuffleUnit: {
    kind: 'choice',
    values: ['sample', 'shard', 'chunk'],
    shown: 'by the sizes',
    help: 'What is shuffled over all of the dataset, before blocks are shuffled',
  },
  streams: {
    kind: 'whole',
    from: 1,
    to: 65_536,
    shown: 'the least common multiple of 192 and `worldSize`',
    commands: ['bench', 'plan'],
    help: 'Streams that are read at once over all ranks',
  },
  shuffleBufferSize: {
    kind: 'whole',
    from: 1,
    shown: 'what makes blocks of about 2 MiB',
    commands: ['plan'],
    help: 'Samples in the shuffle buffers of all streams together',
  },
  blockSamples: { kind: 'whole', from: 1, help: 'Samples in a block of a stream, instead of `shuffleBufferSize`' },
  rank: {
    kind: 'whole',
    from: 0,
    shown: 'RANK, else SLURM_PROCID, else 0',
    help: 'Which of `worldSize` processes this is',
  },
  worldSize: {
    kind: 'whole',
    from: 1,
    shown: 'WORLD_SIZE, else SLURM_NTASKS, else 1',
    commands: ['plan'],
    help: 'Processes that share an epoch, one for each GPU',
  },
  lastBatch: {
    kind: 'choice',
    values: ['pad', 'drop', 'partial'],
    shown: 'partial alone, pad with more than one rank',
    commands: ['plan'],
    help: 'What becomes of an incomplete last batch',
  },
  buckets: {
    kind: 'own',
    type: 'BucketsInput',
    must: 'is { area, step, maxRatio, crop }, { sizes, crop } or a list of sizes, each [height, width]',
    python: 'Buckets',
    shown: 'batches of one size',
    commands: ['bench', 'plan', 'preview'],
    help: 'Batches of several sizes: each image goes to the size nearest to its shape (docs/buckets.md)',
  },
  holdBytes: {
    kind: 'bytes',
    from: 0,
    default: 2 ** 28,
    commands: ['bench'],
    help: 'Most memory for encoded samples that wait for a batch of their size longer than the block that they came in',
  },
  epochSamples: {
    kind: 'whole',
    from: 1,
    shown: 'all samples',
    help: 'Samples of an epoch, out of the endless sequence of passes',
  },
  classes: { kind: 'classes', shown: 'all', help: 'Only these classes: text is a name, a number a class number' },
  keys: { kind: 'texts', shown: 'all', help: 'Only these keys' },
  where: {
    kind: 'text',
    shown: 'all',
    commands: ['bench', 'plan', 'preview'],
    help: 'Only samples for which this holds, over the columns of the index: `width >= 256 and cls in (3, 7)`',
  },
  weights: {
    kind: 'own',
    type: 'Weights',
    must: 'is { cat: 2 }, a Map or a list of pairs of class and weight, an array of a number for each sample, or a function',
    python: 'Mapping[str | int, float] | ArrayLike',
    shown: '1 each',
    help: 'How often a sample comes in an epoch: by class, by an array of a number for each sample, or by a function',
  },
  order: {
    kind: 'own',
    type: 'ArrayLike<number>',
    must: 'is an array of numbers of samples, as [4, 0, 17]',
    python: 'ArrayLike',
    shown: 'shuffled by seed and epoch',
    help: 'Numbers of samples, as `Dataset[i]` counts them, in the order in which they come; one may come more than once',
  },
  workers: {
    kind: 'whole',
    from: 1,
    to: 1024,
    shown: 'one a core',
    commands: ['bench'],
    help: 'Threads that decode',
  },
  prefetchBatches: {
    kind: 'whole',
    from: 1,
    default: 4,
    commands: ['bench'],
    help: "Batches that are made ahead, the consumer's included",
  },
  checksum: {
    kind: 'choice',
    values: ['first-epoch', 'always', 'never'],
    default: 'first-epoch',
    commands: ['bench'],
    help: 'When the crc32 of each image, mask and field that is delivered is checked',
  },
  collate: {
    kind: 'choice',
    values: ['stack', 'list'],
    default: 'stack',
    help: '`stack`: one array of images of one size; `list`: an array for each image',
  },
  image: {
    kind: 'text',
    shown: 'the first field of an image kind',
    commands: ['bench', 'preview'],
    help: 'The field that is the image',
  },
  moreImages: {
    kind: 'texts',
    default: [],
    help: 'Further fields that are images of the same size and share its transform, as `batch.moreImages`',
  },
  masks: {
    kind: 'texts',
    isJoined: true,
    default: [],
    commands: ['preview'],
    help: 'Fields that are masks of the image: they share its crop, flips and rotation, as `batch.masks`',
  },
  annotations: {
    kind: 'own',
    type: 'AnnotationOptions',
    must: "is { boxes: { field: 'json', path: 'boxes', format: 'xywh' }, labels, keypoints, polygons } (docs/detection.md)",
    python: 'Mapping[str, Any]',
    shown: null,
    help: 'Boxes, keypoints and polygons that move with the image, as `batch.boxes` and the like (docs/detection.md)',
  },
  steps: {
    kind: 'own',
    type: 'OwnSteps',
    must: "is { fields, pixels, batch }, each of them { module: './steps.mjs', export, options }",
    python: 'Mapping[str, Mapping[str, Any]]',
    shown: null,
    help: 'Your own code, in JavaScript, which runs in the workers',
  },
  mix: {
    kind: 'own',
    type: 'MixInput | readonly MixInput[]',
    must: "is { name: 'mixup' or 'cutmix', alpha }, or a list of those",
    python: 'Mapping[str, Any] | Sequence[Mapping[str, Any]]',
    shown: null,
    help: 'Mixes each image with the one before it; `batch.mix` says how',
  },
  fields: {
    kind: 'texts',
    shown: 'all but image and class; in Python none',
    help: 'Fields, and columns of the labels, that come along as `batch.fields`',
  },
  textChoice: {
    kind: 'choice',
    values: ['random'],
    shown: 'all texts',
    help: '`random` takes one of several captions (a JSON list, or lines), another one each epoch',
  },
  onBadSample: {
    kind: 'choice',
    values: ['raise', 'skip', 'substitute'],
    default: 'raise',
    commands: ['bench'],
    help: 'A bad sample ends the loop, makes a row that is not valid, or is replaced by the next of its block',
  },
  maxPixels: { kind: 'whole', from: 1, default: 178_956_970, help: 'Images of more pixels are bad samples' },
  decode: {
    kind: 'choice',
    values: ['exact', 'scaled', 'fast'],
    shown: 'scaled',
    commands: ['bench', 'preview'],
    flag: 'decode-mode',
    help: 'How large JPEGs are decoded: whole, or smaller where twice, or once, the size is left (docs/transforms.md)',
  },
  applyExifOrientation: {
    kind: 'switch',
    shown: 'false; with buckets true',
    commands: ['preview'],
    help: 'Turn images as their EXIF orientation says',
  },
  cropIndex: {
    kind: 'switch',
    shown: 'where reads are quick',
    commands: ['bench'],
    help: 'Decode crops by the crop indexes of shards that have them',
  },
  readBufferBytes: {
    kind: 'bytes',
    from: 1,
    shown: 'half of the memory',
    commands: ['bench'],
    help: 'Most memory for encoded samples',
  },
  readConcurrency: {
    kind: 'whole',
    from: 1,
    shown: '4 on a local disk, elsewhere as many as bring more bytes a second',
    commands: ['bench'],
    help: 'Blocks that are being read at once',
  },
  cache: {
    kind: 'path',
    python: 'str | os.PathLike[str]',
    commands: ['bench'],
    help: 'Folder on a disk of this machine that keeps what was fetched, for all processes',
  },
  cacheSize: { kind: 'size', shown: 'half of what is free', commands: ['bench'], help: 'Most bytes in the cache' },
  release: {
    kind: 'choice',
    values: ['auto', 'manual'],
    default: 'auto',
    python: false,
    help: 'A batch is valid until the next is asked for, or until `batch.release()`',
  },
  slotFile: {
    kind: 'whole',
    from: 0,
    python: false,
    help: 'Descriptor of an open file whose memory the batch slots become: whoever maps it sees the batches',
  },
  state: {
    kind: 'own',
    type: 'unknown',
    must: 'is what loader.state() gave',
    python: false,
    help: 'Go on where `loader.state()` was taken',
  },
  signal: {
    kind: 'own',
    type: 'AbortSignal',
    must: 'is an AbortSignal',
    python: false,
    help: "Ends the loop with the signal's reason",
  },
} as const satisfies Readonly<Record<string, LoaderOption>>;
