import type { OpenOptions } from '@shardtool/reader';
import type { OtherIndex } from '@shardtool/writer';
import { size, wholeNumber } from './flags.js';
import { UsageError } from './outcome.js';
import { countOf } from './size.js';

/** `--index wids,dali`: indexes for other loaders. */
export const INDEX_FLAG = {
  type: 'string',
  array: true,
  requiresArg: true,
  describe: 'Indexes for other loaders of tars: wids (webdataset), dali (NVIDIA DALI), or wids,dali',
  coerce: (given: readonly string[]): OtherIndex[] =>
    [...new Set(given.flatMap((words) => words.split(',')))].map(otherIndex),
} as const;

/** What `--index` and `--crop-index` ask for; undefined: nothing, or what was asked for before. */
export function askedIndexes(index: readonly OtherIndex[] | undefined, cropIndex = false): OtherIndex[] | undefined {
  if (!cropIndex) return index && [...index];
  return [...new Set([...(index ?? []), 'crops' as const])];
}

function otherIndex(word: string): OtherIndex {
  if (word === 'wids' || word === 'dali' || word === 'crops') return word;
  throw new UsageError(`--index takes wids, dali and crops, with commas between them, and not "${word}".`);
}

/**
 * The flags of every command that writes shards. What is left out is filled in by the writer, whose defaults the
 * descriptions repeat.
 */
export const OUTPUT_FLAGS = {
  format: {
    choices: ['tar', 'lmdb', 'msgpack'] as const,
    requiresArg: true,
    defaultDescription: 'tar',
    describe: 'Kind of shards',
  },
  'lmdb-values': {
    choices: ['sample', 'image'] as const,
    requiresArg: true,
    defaultDescription: 'sample',
    describe: 'What LMDB has under a key: all fields, or the image alone as torchvision reads it',
  },
  index: INDEX_FLAG,
  'crop-index': {
    type: 'boolean',
    default: false,
    describe: 'Also write where the parts of each baseline JPEG begin: random crops are then decoded sooner',
  },
  'max-shard-bytes': {
    ...size('--max-shard-bytes', 'Largest shard, as 256MB or 64MiB'),
    defaultDescription: '256MiB',
  },
  'max-shard-samples': wholeNumber('--max-shard-samples', 'Most samples in a shard'),
  name: {
    type: 'string',
    requiresArg: true,
    describe: 'In front of the numbers: train gives train-000000.tar',
  },
  workers: {
    ...wholeNumber('--workers', 'Threads', { to: 1024 }),
    defaultDescription: 'one a core',
  },
  overwrite: {
    type: 'boolean',
    default: false,
    describe: 'Replace what an earlier run made, its indexes for other loaders too',
  },
  json: { type: 'boolean', default: false, describe: 'The report as one JSON object' },
  quiet: { type: 'boolean', default: false, describe: 'Print nothing when all is well' },
} as const;

/** `--copy OUT` of commands that name a part or another view of a dataset. */
export const COPY_FLAG = {
  type: 'string',
  requiresArg: true,
  describe: 'Also write it as shards of its own into this folder; bytes are copied, images not encoded',
} as const;

/** Writes what a view shows as a dataset of its own, in the layout that the dataset has. */
export async function copyView(location: string, view: OpenOptions, output: string): Promise<string> {
  const [{ openDataset }, { convert }] = await Promise.all([import('@shardtool/reader'), import('@shardtool/writer')]);
  const dataset = await openDataset(location, view);
  await dataset.close();
  const format = dataset.format === 'lmdb' || dataset.format === 'msgpack' ? dataset.format : 'tar';
  const { samples, shards } = await convert(location, output, { ...view, format });
  return `Copied ${countOf(samples, 'sample')} in ${countOf(shards, 'shard')} to ${output}.\n`;
}
