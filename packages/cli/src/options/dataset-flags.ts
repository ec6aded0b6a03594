import { readFile } from 'node:fs/promises';
import type { Dataset, OpenOptions, StoredDataset } from '@shardtool/reader';
import { UsageError } from '../terminal/outcome.js';
import { size } from './flags.js';

/** The flags of every command that reads a dataset: how it is seen. */
export const DATASET_FLAGS = {
  overlay: {
    type: 'string',
    requiresArg: true,
    describe: 'Name of an overlay of the dataset, or its file: other classes, columns and splits, samples left out',
  },
  split: {
    type: 'string',
    requiresArg: true,
    describe:
      'Only this split: one that the files themselves are of, or of the overlay "split" unless another is named',
  },
  'image-feature': {
    type: 'string',
    requiresArg: true,
    describe:
      'TFRecord, HDF5: the feature or dataset that is the image, where none of the usual names is (image/encoded, image)',
  },
  'label-feature': {
    type: 'string',
    requiresArg: true,
    describe: 'TFRecord, HDF5: the one that is the class number (image/class/label, label)',
  },
  'key-feature': {
    type: 'string',
    requiresArg: true,
    describe: 'TFRecord, HDF5: the one that is the key; without it keys are FILE/NUMBER',
  },
  layout: {
    type: 'string',
    requiresArg: true,
    describe: 'What a place is taken for that could be read in several ways; ls says which',
  },
  'exclude-keys': {
    type: 'string',
    requiresArg: true,
    describe: 'Leave out the samples whose keys stand in this file',
  },
  'max-sample-bytes': {
    ...size('--max-sample-bytes', 'Largest sample that is read, all its fields together, as 4GiB'),
    defaultDescription: '1024MiB',
  },
} as const;

interface DatasetGiven {
  readonly overlay?: string | undefined;
  readonly split?: string | undefined;
  readonly layout?: string | undefined;
  readonly imageFeature?: string | undefined;
  readonly labelFeature?: string | undefined;
  readonly keyFeature?: string | undefined;
  readonly excludeKeys?: string | undefined;
  readonly maxSampleBytes?: number | undefined;
}

/** What the flags say, as `openDataset` takes it. */
export async function viewOf(given: DatasetGiven): Promise<OpenOptions> {
  const { overlay, split, layout, excludeKeys } = given;
  const { imageFeature: image, labelFeature: label, keyFeature: key } = given;
  const isChosen = [image, label, key].some((name) => name !== undefined);
  const keys = excludeKeys === undefined ? undefined : await readKeys('--exclude-keys', excludeKeys);
  return {
    overlay,
    split,
    layout: layout as OpenOptions['layout'],
    excludeKeys: keys,
    ...(isChosen && { features: { image, label, key } }),
  };
}

/** Opens a dataset as the flags say, to look at what is stored: without what makes loaders, which takes long to load. */
export async function openFilesGiven(location: string, given: DatasetGiven): Promise<StoredDataset> {
  const { openFiles } = await import('@shardtool/reader/open-files');
  return openFiles(location, await optionsOf(given));
}

/** Opens a dataset as the flags say. */
export async function openGiven(location: string, given: DatasetGiven): Promise<Dataset> {
  const { openDataset } = await import('@shardtool/reader');
  return openDataset(location, await optionsOf(given));
}

async function optionsOf(given: DatasetGiven): Promise<OpenOptions> {
  return { ...(await viewOf(given)), maxSampleBytes: given.maxSampleBytes };
}

/** The keys in a text file, one a line. */
export async function readKeys(flag: string, file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch((cause: Error) => {
    throw new UsageError(`${flag}: ${file} cannot be read (${cause.message}).`);
  });
  return text.split(/\r?\n/).filter((line) => line !== '');
}
