import { readFile } from 'node:fs/promises';
import { reasonOf } from '@shardtool/base';
import type { Dataset, OpenOptions, StoredDataset } from '@shardtool/reader';
import type { FlagTable } from '../command.js';
import { UsageError } from '../terminal/outcome.js';
import { size } from './flags.js';

const INPUT = { type: 'string', requiresArg: true, group: 'Input' } as const;
const FORMAT = { type: 'string', requiresArg: true, group: 'Input format' } as const;

/** Options of every command that reads a dataset. */
export const DATASET_FLAGS = {
  overlay: {
    ...INPUT,
    placeholder: 'NAME',
    describe: 'Apply this overlay: other classes, columns and splits, excluded samples. A name, or a file',
  },
  split: {
    ...INPUT,
    placeholder: 'NAME',
    describe: 'Read only this split, such as train. Splits come from the overlay "split", or from the files themselves',
  },
  at: {
    ...INPUT,
    placeholder: 'VERSION',
    describe: 'Read an earlier version, as "shardtool log" lists them: its identity, or at least 6 digits of it',
  },
  'exclude-keys': {
    ...INPUT,
    placeholder: 'FILE',
    describe: 'Skip the samples whose keys are in this text file, one per line',
  },
  layout: {
    ...FORMAT,
    placeholder: 'FORMAT',
    describe: 'Force the input format if a folder has files of several formats; "ls" lists them',
  },
  'image-feature': {
    ...FORMAT,
    placeholder: 'NAME',
    describe:
      'TFRecord, HDF5: feature or dataset with the image. Default: a usual name, such as image/encoded or image',
  },
  'label-feature': {
    ...FORMAT,
    placeholder: 'NAME',
    describe: 'TFRecord, HDF5: feature or dataset with the class number. Default: image/class/label or label',
  },
  'key-feature': {
    ...FORMAT,
    placeholder: 'NAME',
    describe: 'TFRecord, HDF5: feature or dataset with the key. Default: keys are FILE/NUMBER',
  },
  'max-sample-bytes': {
    ...size('--max-sample-bytes', 'Maximum size of a sample, all fields together, such as 4GiB'),
    group: 'Input format',
    defaultDescription: '1024MiB',
  },
} as const satisfies FlagTable;

interface DatasetGiven {
  readonly overlay?: string | undefined;
  readonly split?: string | undefined;
  readonly at?: string | undefined;
  readonly layout?: string | undefined;
  readonly imageFeature?: string | undefined;
  readonly labelFeature?: string | undefined;
  readonly keyFeature?: string | undefined;
  readonly excludeKeys?: string | undefined;
  readonly maxSampleBytes?: number | undefined;
}

/** The options of `openDataset` that the command line gives. */
export async function viewOf(given: DatasetGiven): Promise<OpenOptions> {
  const { overlay, split, layout, excludeKeys } = given;
  const { imageFeature: image, labelFeature: label, keyFeature: key } = given;
  const isChosen = [image, label, key].some((name) => name !== undefined);
  const keys = excludeKeys === undefined ? undefined : await readKeys('--exclude-keys', excludeKeys);
  return {
    overlay,
    split,
    version: given.at,
    layout: layout as OpenOptions['layout'],
    excludeKeys: keys,
    ...(isChosen && { features: { image, label, key } }),
  };
}

/** Opens a dataset for reading its contents, without the modules for loaders, which take long to load. */
export async function openFilesGiven(location: string, given: DatasetGiven): Promise<StoredDataset> {
  const { openFiles } = await import('@shardtool/reader/open-files');
  return openFiles(location, await optionsOf(given));
}

/** Opens a dataset with the given options. */
export async function openGiven(location: string, given: DatasetGiven): Promise<Dataset> {
  const { openDataset } = await import('@shardtool/reader');
  return openDataset(location, await optionsOf(given));
}

async function optionsOf(given: DatasetGiven): Promise<OpenOptions> {
  return { ...(await viewOf(given)), maxSampleBytes: given.maxSampleBytes };
}

/** Keys of a text file, one per line. */
export async function readKeys(flag: string, file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch((cause: Error) => {
    throw new UsageError(`${flag}: ${file} cannot be read: ${reasonOf(cause)}.`);
  });
  return text.split(/\r?\n/).filter((line) => line !== '');
}
