import type { OptionEntry } from '@shardtool/base';

/** An option of a pack. */
type PackOption = OptionEntry & {
  /** True: other values, other bytes. A plan records it, and a pack that goes on has to be asked for the same. */
  readonly isRecorded: boolean;
};

/** Of every command that writes shards. */
export const OUTPUT_OPTIONS = {
  format: {
    kind: 'choice',
    values: ['tar', 'lmdb', 'msgpack'],
    default: 'tar',
    isRecorded: true,
    help: 'Kind of shards',
  },
  lmdbValues: {
    kind: 'choice',
    values: ['sample', 'image'],
    default: 'sample',
    isRecorded: true,
    help: 'What LMDB has under a key: all fields, or the image alone as torchvision reads it',
  },
  index: {
    kind: 'choices',
    values: ['wids', 'dali', 'crops'],
    default: [],
    isRecorded: true,
    help: 'Indexes for other loaders of tars: wids (webdataset), dali (NVIDIA DALI), or wids,dali',
  },
  maxShardBytes: {
    kind: 'bytes',
    from: 1,
    default: 256 * 2 ** 20,
    isRecorded: true,
    help: 'Largest shard, as 256MB or 64MiB; where images are encoded anew, of the files as they are in the source',
  },
  maxShardSamples: {
    kind: 'whole',
    from: 1,
    default: Number.MAX_SAFE_INTEGER,
    shown: null,
    isRecorded: true,
    help: 'Most samples in a shard',
  },
  maxSampleBytes: {
    kind: 'bytes',
    from: 1,
    default: 2 ** 30,
    isRecorded: false,
    help: 'Largest sample, all its fields together, as 4GiB; a larger one is an error',
  },
  name: {
    kind: 'text',
    pattern: /^[A-Za-z0-9_][A-Za-z0-9_.-]*$|^$/,
    must: 'is of letters, digits, "_", "-" and "." only',
    default: '',
    isRecorded: true,
    help: 'In front of the numbers: train gives train-000000.tar',
  },
  workers: { kind: 'whole', from: 1, to: 1024, shown: 'one a core', isRecorded: false, help: 'Threads' },
  staging: {
    kind: 'path',
    shown: "the system's temporary folder",
    isRecorded: false,
    help: 'Folder on this machine for shards on their way to a bucket',
  },
  overwrite: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Replace what an earlier run made, its indexes for other loaders too',
  },
} as const satisfies Readonly<Record<string, PackOption>>;

/** Of a pack, beside {@link OUTPUT_OPTIONS}. */
export const PACK_OPTIONS = {
  seed: {
    kind: 'whole',
    from: 0,
    default: 0,
    isRecorded: true,
    help: 'Of the order in which samples are packed',
  },
  shuffle: { kind: 'switch', default: true, isRecorded: true, help: '--no-shuffle keeps the order of the paths' },
  // What these make of the source is compared itself: which files, classes and columns there are.
  classes: {
    kind: 'list',
    least: 1,
    isRecorded: false,
    help: 'Text file with the classes in the order of their numbers',
  },
  labels: { kind: 'path', isRecorded: false, help: 'CSV or JSON Lines: path, class, further columns for the index' },
  requireLabels: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Stop if an image of the source has no row in --labels or --coco',
  },
  allowMissingFiles: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Count rows of --labels or --coco without a file, and list them in skipped.jsonl; they are no bad files',
  },
  splits: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Pack train/, val/ and test/ below the source, each to a dataset below the output, with one list of classes',
  },
  coco: {
    kind: 'path',
    isRecorded: false,
    help: "COCO's annotations: boxes, labels, keypoints and polygons as the field json, and the categories as classes",
  },
  yolo: {
    kind: 'path',
    isRecorded: false,
    help: "The same from YOLO's label files, in labels/ beside images/: data.yaml, or a text file with the class names",
  },
  files: { kind: 'list', isRecorded: false, help: 'Text file with the paths to pack, instead of the whole folder' },
  fields: {
    kind: 'texts',
    pattern: /^[_-]*[^._\-/\\][^/\\]*$/,
    must: 'is an ending without the dot in front',
    isJoined: true,
    default: [],
    isRecorded: true,
    help: 'Endings of files that belong to the image with the same stem: seg.png, or _mask.png (field mask.png), with commas between them',
  },
  pair: {
    kind: 'texts',
    pattern: /^[^=/\\]+=[^=/\\]+$/,
    must: 'is a folder and a field, as masks=seg.png',
    isJoined: true,
    default: [],
    isRecorded: true,
    help: 'masks=seg.png: masks/1.png is the field seg.png of the image beside that folder, images/1.jpg',
  },
  include: {
    kind: 'texts',
    default: ['**'],
    shown: null,
    isRecorded: true,
    help: 'Glob pattern below the source: pack only what fits one',
  },
  exclude: {
    kind: 'texts',
    default: [],
    isRecorded: true,
    help: 'Glob pattern below the source: leave out what fits one',
  },
  resize: {
    kind: 'whole',
    from: 1,
    to: 65_535,
    isRecorded: true,
    help: 'Shrink images until the shorter side has so many pixels',
  },
  quality: {
    kind: 'whole',
    from: 1,
    to: 100,
    shown: '90',
    isRecorded: true,
    help: 'Of re-encoded JPEG and WebP, 1 to 100',
  },
  imageFormat: {
    kind: 'choice',
    values: ['jpg', 'png', 'webp', 'npy'],
    isRecorded: true,
    help: 'Re-encode every image; npy: uncompressed, the fastest to train from',
  },
  check: {
    kind: 'choice',
    values: ['header', 'decode'],
    default: 'header',
    isRecorded: true,
    help: 'decode: refuse images that cannot be decoded whole',
  },
  minSize: {
    kind: 'whole',
    from: 1,
    to: 65_535,
    default: 1,
    shown: null,
    isRecorded: true,
    help: 'Refuse images with a side of fewer pixels',
  },
  maxPixels: {
    kind: 'whole',
    from: 1,
    default: 178_956_970,
    isRecorded: true,
    help: 'Refuse images that have, or claim, more pixels',
  },
  stripMetadata: {
    kind: 'switch',
    default: false,
    isRecorded: true,
    help: 'Remove Exif, XMP, IPTC and comments; pixels and orientation stay. TIFF, AVIF and damaged images stay as they are',
  },
  dedupe: {
    kind: 'switch',
    default: false,
    isRecorded: true,
    help: 'Pack images with the same bytes once: duplicates.jsonl lists the others; with --append those in the shards count, too, unless packing changes their bytes',
  },
  onBad: {
    kind: 'choice',
    values: ['stop', 'quarantine'],
    default: 'stop',
    isRecorded: false,
    help: 'What becomes of files that cannot be packed: quarantine.jsonl lists them',
  },
  maxBad: {
    kind: 'share',
    default: 0.01,
    isRecorded: false,
    help: 'Share of bad images at which the pack gives up',
  },
  planMemory: {
    kind: 'bytes',
    from: 1,
    to: 2 ** 30,
    default: 256 * 2 ** 20,
    isRecorded: false,
    help: 'Memory for the paths of the source; more of them go to the disk',
  },
  inFlight: {
    kind: 'whole',
    from: 1,
    to: 1024,
    isRecorded: false,
    help: 'Files that are asked for at a time; else tried out, where the source is slow',
  },
  ioTimeout: {
    kind: 'seconds',
    to: 86_400,
    default: 120,
    isRecorded: false,
    help: 'Seconds without an answer of a slow source after which the pack ends',
  },
  append: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Add shards for the images that the dataset does not have yet',
  },
  part: {
    kind: 'text',
    isRecorded: false,
    help: 'Pack the third of 16 parts with 3/16; an array job of Slurm and an Indexed Job of Kubernetes say it themselves',
  },
  restart: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Begin anew where a pack did not end, instead of going on',
  },
  recheck: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Read shards again that were finished before the pack was stopped',
  },
  dryRun: { kind: 'switch', default: false, isRecorded: false, help: 'Only say what would be made' },
} as const satisfies Readonly<Record<string, PackOption>>;

/** Of a writer of samples from code, beside {@link OUTPUT_OPTIONS}. */
export const WRITER_OPTIONS = {
  part: { kind: 'text', isRecorded: false, help: 'The second of four parts of one dataset with 2/4' },
} as const satisfies Readonly<Record<string, PackOption>>;

/** Of a conversion, beside {@link OUTPUT_OPTIONS}. */
export const CONVERT_OPTIONS = {
  format: {
    ...OUTPUT_OPTIONS.format,
    values: ['tar', 'lmdb', 'msgpack', 'mds', 'tfrecord', 'parquet'],
    help: 'Kind of shards; parquet: for the Hub of Hugging Face, tfrecord: for TensorFlow, mds: for MosaicML',
  },
  labels: {
    ...PACK_OPTIONS.labels,
    help: 'CSV or JSON Lines for shards without classes: path or key, class, further columns',
  },
  classes: PACK_OPTIONS.classes,
  // Without a default: names are read as WebDataset does, unless endings are given.
  fields: {
    kind: 'texts',
    pattern: PACK_OPTIONS.fields.pattern,
    must: PACK_OPTIONS.fields.must,
    isJoined: true,
    default: [],
    isRecorded: false,
    help: 'Name the files of one tar as pack does, with these endings: seg.png',
  },
  links: {
    kind: 'choice',
    values: ['skip', 'follow'],
    default: 'skip',
    isRecorded: false,
    help: 'Links in tars: skipped and counted, or taken for the file in the same tar that they lead to',
  },
  where: {
    kind: 'text',
    isRecorded: false,
    help: 'Only samples for which this holds: \'width >= 256 and class == "cat"\'',
  },
} as const satisfies Readonly<Record<string, PackOption>>;
