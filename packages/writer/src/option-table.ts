import type { OptionEntry } from '@shardtool/base';

/** Table entry of an option of a pack. */
type PackOption = OptionEntry & {
  /** True if the value changes the bytes of the result. The plan records it, and resuming requires the same value. */
  readonly isRecorded: boolean;
};

/** Options of every command that writes shards. */
export const OUTPUT_OPTIONS = {
  format: {
    kind: 'choice',
    values: ['tar', 'lmdb', 'msgpack'],
    default: 'tar',
    isRecorded: true,
    help: 'Format of the shards',
  },
  lmdbValues: {
    kind: 'choice',
    values: ['sample', 'image'],
    default: 'sample',
    isRecorded: true,
    help: 'What each LMDB value contains: all fields, or only the image, as torchvision expects',
  },
  index: {
    kind: 'choices',
    values: ['wids', 'dali', 'crops'],
    default: [],
    isRecorded: true,
    help: 'Also write indexes for other loaders of tars: wids (webdataset), dali (NVIDIA DALI), or wids,dali',
  },
  maxShardBytes: {
    kind: 'bytes',
    from: 1,
    default: 256 * 2 ** 20,
    isRecorded: true,
    help: 'Maximum size of a shard, e.g. 256MB or 64MiB; if images are re-encoded, source bytes are counted',
  },
  maxShardSamples: {
    kind: 'whole',
    from: 1,
    default: Number.MAX_SAFE_INTEGER,
    shown: null,
    isRecorded: true,
    help: 'Maximum number of samples in a shard',
  },
  maxSampleBytes: {
    kind: 'bytes',
    from: 1,
    default: 2 ** 30,
    isRecorded: false,
    help: 'Maximum size of a sample, all fields together, e.g. 4GiB; a larger sample is an error',
  },
  name: {
    kind: 'text',
    pattern: /^[A-Za-z0-9_][A-Za-z0-9_.-]*$|^$/,
    must: 'has only letters, digits, "_", "-" and "."',
    default: '',
    isRecorded: true,
    help: 'Prefix of the shard names: train gives train-000000.tar',
  },
  workers: {
    kind: 'whole',
    from: 1,
    to: 1024,
    shown: 'one per core',
    isRecorded: false,
    help: 'Number of worker threads',
  },
  staging: {
    kind: 'path',
    shown: "the system's temporary folder",
    isRecorded: false,
    help: 'Local folder for shards that are being uploaded to a bucket',
  },
  overwrite: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Replace the output of an earlier run, including its indexes for other loaders',
  },
} as const satisfies Readonly<Record<string, PackOption>>;

/** Options of a pack, in addition to {@link OUTPUT_OPTIONS}. */
export const PACK_OPTIONS = {
  seed: {
    kind: 'whole',
    from: 0,
    default: 0,
    isRecorded: true,
    help: 'Seed of the order in which samples are packed',
  },
  shuffle: {
    kind: 'switch',
    default: true,
    isRecorded: true,
    help: 'Shuffle the samples; --no-shuffle keeps the order of the paths',
  },
  // The values of these options are not recorded. Their effect on the source is compared: its files, classes and
  // columns.
  classes: {
    kind: 'list',
    least: 1,
    isRecorded: false,
    help: 'Text file with the class names in the order of their numbers, one per line',
  },
  labels: {
    kind: 'path',
    isRecorded: false,
    help: 'CSV or JSON Lines: path, class, and further columns for the index',
  },
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
    help: 'Skip rows of --labels or --coco whose file is missing, and list them in skipped.jsonl, instead of treating them as bad files',
  },
  splits: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Pack the folders train/, val/ and test/ of the source, each to its own dataset below the output, with one list of classes',
  },
  coco: {
    kind: 'path',
    isRecorded: false,
    help: 'JSON file of COCO annotations: boxes, labels, keypoints and polygons become the field json, categories become classes',
  },
  yolo: {
    kind: 'path',
    isRecorded: false,
    help: 'YOLO annotations from the label files in labels/, next to images/: data.yaml, or a text file with the class names',
  },
  files: { kind: 'list', isRecorded: false, help: 'Text file with the paths to pack, instead of the whole folder' },
  fields: {
    kind: 'texts',
    pattern: /^[_-]*[^._\-/\\][^/\\]*$/,
    must: 'is an extension without the leading dot',
    isJoined: true,
    default: [],
    isRecorded: true,
    help: 'Extensions of files that belong to the image with the same stem, separated by commas: seg.png, or _mask.png (field mask.png)',
  },
  pair: {
    kind: 'texts',
    pattern: /^[^=/\\]+=[^=/\\]+$/,
    must: 'is a folder and a field, such as masks=seg.png',
    isJoined: true,
    default: [],
    isRecorded: true,
    help: 'masks=seg.png: masks/1.png becomes the field seg.png of the image in a folder next to it, images/1.jpg',
  },
  include: {
    kind: 'texts',
    default: ['**'],
    shown: null,
    isRecorded: true,
    help: 'Glob pattern below the source: pack only matching files',
  },
  exclude: {
    kind: 'texts',
    default: [],
    isRecorded: true,
    help: 'Glob pattern below the source: skip matching files',
  },
  resize: {
    kind: 'whole',
    from: 1,
    to: 65_535,
    isRecorded: true,
    help: 'Shrink images so that the shorter side has this many pixels',
  },
  quality: {
    kind: 'whole',
    from: 1,
    to: 100,
    shown: '90',
    isRecorded: true,
    help: 'Quality of re-encoded JPEG and WebP, 1 to 100',
  },
  imageFormat: {
    kind: 'choice',
    values: ['jpg', 'png', 'webp', 'npy'],
    isRecorded: true,
    help: 'Re-encode every image in this format; npy is uncompressed, the fastest for training',
  },
  check: {
    kind: 'choice',
    values: ['header', 'decode'],
    default: 'header',
    isRecorded: true,
    help: 'header reads kind and size; decode also rejects images that cannot be fully decoded',
  },
  minSize: {
    kind: 'whole',
    from: 1,
    to: 65_535,
    default: 1,
    shown: null,
    isRecorded: true,
    help: 'Reject images with a side shorter than this many pixels',
  },
  maxPixels: {
    kind: 'whole',
    from: 1,
    default: 178_956_970,
    isRecorded: true,
    help: 'Reject images with more pixels, by their header or once decoded',
  },
  stripMetadata: {
    kind: 'switch',
    default: false,
    isRecorded: true,
    help: 'Remove Exif, XMP, IPTC and comments; pixels and orientation stay. TIFF, AVIF and damaged images are not changed',
  },
  dedupe: {
    kind: 'switch',
    default: false,
    isRecorded: true,
    help: 'Pack images with the same bytes once, and list the others in duplicates.jsonl; with --append, also compare with the images in the dataset, unless packing changes bytes',
  },
  onBad: {
    kind: 'choice',
    values: ['raise', 'quarantine'],
    default: 'raise',
    isRecorded: false,
    help: 'What to do with files that cannot be packed: stop with an error (raise), or list them in quarantine.jsonl and continue',
  },
  maxBad: {
    kind: 'share',
    default: 0.01,
    isRecorded: false,
    help: 'Share of images that may be bad before the pack stops',
  },
  planMemory: {
    kind: 'bytes',
    from: 1,
    to: 2 ** 30,
    default: 256 * 2 ** 20,
    isRecorded: false,
    help: 'Memory limit for the paths of the source; beyond it they are written to disk',
  },
  inFlight: {
    kind: 'whole',
    from: 1,
    to: 1024,
    isRecorded: false,
    help: 'Number of concurrent file requests; by default adjusted to the source if it is slow',
  },
  ioTimeout: {
    kind: 'seconds',
    to: 86_400,
    default: 120,
    isRecorded: false,
    help: 'Seconds without an answer from a slow source after which the pack stops',
  },
  append: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Add shards for images that the dataset does not have yet',
  },
  part: {
    kind: 'text',
    isRecorded: false,
    help: 'Pack one part, e.g. 3/16 for the third of 16; detected in Slurm array jobs and Kubernetes Indexed Jobs',
  },
  restart: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'Discard an unfinished pack and start again, instead of resuming',
  },
  recheck: {
    kind: 'switch',
    default: false,
    isRecorded: false,
    help: 'When resuming, read all finished shards again to check them',
  },
  dryRun: { kind: 'switch', default: false, isRecorded: false, help: 'Only print what would be written' },
} as const satisfies Readonly<Record<string, PackOption>>;

/** Options of a writer of samples, in addition to {@link OUTPUT_OPTIONS}. */
export const WRITER_OPTIONS = {
  part: { kind: 'text', isRecorded: false, help: 'Write one part of a dataset: 2/4 is the second of four' },
} as const satisfies Readonly<Record<string, PackOption>>;

/** Options of a conversion, in addition to {@link OUTPUT_OPTIONS}. */
export const CONVERT_OPTIONS = {
  format: {
    ...OUTPUT_OPTIONS.format,
    values: ['tar', 'lmdb', 'msgpack', 'mds', 'tfrecord', 'parquet'],
    help: 'Format of the shards; parquet is for the Hugging Face Hub, tfrecord for TensorFlow, mds for MosaicML',
  },
  labels: {
    ...PACK_OPTIONS.labels,
    help: 'CSV or JSON Lines for shards without classes: path or key, class, and further columns',
  },
  classes: PACK_OPTIONS.classes,
  // Without a default: names are split as WebDataset does, unless extensions are given.
  fields: {
    kind: 'texts',
    pattern: PACK_OPTIONS.fields.pattern,
    must: PACK_OPTIONS.fields.must,
    isJoined: true,
    default: [],
    isRecorded: false,
    help: 'Name the files of one tar as pack does, with these extensions: seg.png',
  },
  links: {
    kind: 'choice',
    values: ['skip', 'follow'],
    default: 'skip',
    isRecorded: false,
    help: 'Links in tars: skip and count them, or use the file in the same tar that they point to',
  },
  where: {
    kind: 'text',
    isRecorded: false,
    help: 'Only samples that match this condition: \'width >= 256 and class == "cat"\'',
  },
} as const satisfies Readonly<Record<string, PackOption>>;
