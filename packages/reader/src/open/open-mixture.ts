import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { FileError, OptionError, optionName, reasonOf, sentence } from '@shardtool/base';
import { type IndexPart, layoutNames, type PartOfIndex, parseShape, type ShardIndex } from '@shardtool/format';
import { isRemote, type StorageOptions, shownLocation } from '@shardtool/storage';
import { z } from 'zod';
import type { ShardFile } from '../dataset/shards/shard-file.js';
import { type ClassLists, joinClasses } from '../mixture/class-lists.js';
import type { MixedDataset } from '../mixture/settings.js';
import type { MixturePolicy } from '../mixture/shares.js';
import { Dataset } from './dataset.js';
import type { OpenOptions } from './find-parts.js';
import { Mixture } from './mixture.js';

/** One dataset of a mixture: the dataset or its location, its share, and a selection of its samples. */
export interface MixturePart extends Omit<OpenOptions, 'excludeKeys' | 'signal'> {
  readonly dataset: string | readonly string[] | Dataset;
  /** Name in messages and in `end`. Default: the location. */
  readonly name?: string | undefined;
  /** Share of the samples, exact as written in decimal. Either all parts have a weight, or none. */
  readonly weight?: number | undefined;
  /** Number of passes over its samples in an epoch, instead of a weight. Default: 1. */
  readonly repeat?: number | undefined;
  /** Keys of samples that are omitted. */
  readonly excludeKeys?: readonly string[] | undefined;
  /** Only the samples of this dataset that match. The loader's options of the same names select from all datasets. */
  readonly classes?: readonly (string | number)[] | undefined;
  readonly keys?: readonly string[] | undefined;
  readonly where?: string | undefined;
}

export interface MixtureOptions {
  /**
   * Where an epoch ends if `weights` or `perBatch` are set: with the dataset whose samples are used up first (default)
   * or last, or with this dataset, by name or number.
   */
  readonly end?: 'first' | 'last' | number | string | undefined;
  /** Samples of an epoch, instead of `end`; also an option of a loader. */
  readonly samplesPerEpoch?: number | undefined;
  /** Rows of each dataset in every batch of all ranks; instead of weights. */
  readonly perBatch?: readonly number[] | undefined;
  /** Default `name`. */
  readonly classLists?: ClassLists | undefined;
  /**
   * Number of consecutive samples of a dataset. Default: depends on the batch size. The number of ranks must divide it.
   */
  readonly group?: number | undefined;
  /** Number of such groups that are shuffled together. Default: the number of groups in a batch. */
  readonly window?: number | undefined;
  /** Aborts opening, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Opens one of the datasets. */
type Open = (location: string | readonly string[], options: object) => Promise<Dataset>;

const strings = z.array(z.string());
const part = z.strictObject({
  dataset: z.union([z.string(), strings, z.instanceof(Dataset)]),
  name: z.string().optional(),
  weight: z.number().optional(),
  repeat: z.number().optional(),
  overlay: z.string().optional(),
  split: z.string().optional(),
  version: z.string().optional(),
  layout: z.enum(layoutNames()).optional(),
  features: z
    .strictObject({ image: z.string().optional(), label: z.string().optional(), key: z.string().optional() })
    .optional(),
  excludeKeys: strings.optional(),
  maxSampleBytes: z.union([z.number().positive(), z.string()]).optional(),
  storage: z.custom<StorageOptions>((value) => typeof value === 'object').optional(),
  classes: z.array(z.union([z.string(), z.number().int()])).optional(),
  keys: strings.optional(),
  where: z.string().optional(),
});
const whole = z.number().int().positive();
const settings = z.strictObject({
  end: z.union([z.string(), z.number().int()]).optional(),
  samplesPerEpoch: whole.optional(),
  perBatch: z.array(whole).optional(),
  classLists: z.enum(['name', 'offset', 'apart']).optional(),
  group: whole.optional(),
  window: whole.optional(),
});
/** `epochSamples`: the name of `samplesPerEpoch` in earlier files. */
const file = settings.extend({ mixture: z.array(part), epochSamples: whole.optional() });

/**
 * Makes one dataset of several. `open` opens those that are given by location. Throws {@link OptionError} for invalid
 * parts and options. If `open` throws, the datasets that were opened before are closed.
 */
export async function mixDatasets(
  parts: readonly MixturePart[],
  options: MixtureOptions,
  open: Open,
): Promise<Mixture> {
  const checkedParts = check(z.array(part), parts, 'part');
  const checked = check(settings, options, 'option');
  if (checkedParts.length === 0) throw new OptionError({}, 'A mixture needs at least one dataset.');
  const owned: Dataset[] = [];
  try {
    const datasets = await Promise.all(
      checkedParts.map(async ({ dataset, name, weight, repeat, classes, keys, where, ...opening }, i) => {
        const opened = dataset instanceof Dataset ? dataset : await open(dataset, opening);
        if (opened !== dataset) owned.push(opened);
        const label = name ?? (typeof dataset === 'string' ? shownLocation(dataset) : `dataset ${i}`);
        return { name: label, dataset: opened, selection: { classes, keys, where } };
      }),
    );
    return mixtureOf(datasets, policyOf(checkedParts, checked, datasets), checked, owned);
  } catch (error) {
    await Promise.all(owned.map((dataset) => dataset.close()));
    throw error;
  }
}

/** Parses a file `{ "mixture": [...] }`. Its locations are relative to the file. Throws {@link OptionError}. */
export async function readMixtureFile(location: string): Promise<{ parts: MixturePart[]; options: MixtureOptions }> {
  let read: unknown;
  try {
    read = JSON.parse(await readFile(location, 'utf8'));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) {
      throw new FileError({ path: location }, `${location} cannot be read: ${reasonOf(cause)}.`, { cause });
    }
    throw new OptionError({ path: location }, `${location} is not valid JSON (${cause.message}).`, { cause });
  }
  const { mixture, epochSamples, ...options } = check(file, read, `file ${location}`, ': ');
  const folder = path.dirname(location);
  const placed = (place: string) => (isRemote(place) ? place : path.resolve(folder, place));
  const parts = mixture.map((one) => {
    const { dataset } = one;
    if (dataset instanceof Dataset) return one;
    return {
      ...one,
      dataset: typeof dataset === 'string' ? placed(dataset) : dataset.map(placed),
      ...(typeof dataset === 'string' && { name: one.name ?? shownLocation(dataset) }),
    };
  });
  return { parts, options: { ...options, samplesPerEpoch: options.samplesPerEpoch ?? epochSamples } };
}

function check<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string, joint = ' '): z.output<Schema> {
  return parseShape(schema, value, ({ where, what: fault }) => {
    const name = where === '' ? '' : joint + where;
    return new OptionError({}, `The mixture's ${what}${name} is invalid: it ${fault}.`);
  });
}

function policyOf(
  parts: readonly MixturePart[],
  { end, samplesPerEpoch: epochSamples, perBatch }: MixtureOptions,
  datasets: readonly MixedDataset<Dataset>[],
): MixturePolicy {
  const [weights, repeat] = (['weight', 'repeat'] as const).map((name) => {
    const given = parts.map((one) => one[name]);
    if (given.every((value) => value === undefined)) return undefined;
    const missing = given.indexOf(undefined);
    if (name === 'weight' && missing >= 0) {
      throw new OptionError(
        {},
        `${datasets[missing]!.name} has no weight, but other datasets of the mixture have one: give each dataset a weight, or none.`,
      );
    }
    return given.map((value) => value ?? 1);
  });
  const named = typeof end === 'string' && end !== 'first' && end !== 'last';
  const number = named ? datasets.findIndex(({ name }) => name === end) : -1;
  if (named && number < 0) {
    throw new OptionError(
      {},
      sentence`The mixture's option ${optionName('end')} is "${end}": it must be 'first', 'last', or one of ${datasets.map(({ name }) => name).join(', ')}.`,
    );
  }
  return { weights, repeat, perBatch, epochSamples, end: named ? number : (end as MixturePolicy['end']) };
}

function mixtureOf(
  datasets: readonly MixedDataset<Dataset>[],
  policy: MixturePolicy,
  { classLists = 'name', group, window }: MixtureOptions,
  owned: readonly Dataset[],
): Mixture {
  const lists = datasets.map(({ name, dataset: { classes, classSamples } }) => ({ name, classes, classSamples }));
  const { classes, classSamples, numbers } = joinClasses(lists, classLists);
  const { identities, fields } = { identities: createHash('sha256'), fields: new Set<string>() };
  for (const { dataset } of datasets) {
    identities.update(`${dataset.identity}\n`);
    for (const field of dataset.fields) fields.add(field);
  }
  const parts = {
    location: datasets.map(({ name }) => name).join(' + '),
    format: datasets[0]!.dataset.format,
    identity: `mixture ${identities.digest('hex').slice(0, 32)}`,
    classes,
    classSamples,
    fields: [...fields],
    mostObjects: mostOf(datasets.map(({ dataset }) => dataset.mostObjects)),
    shards: datasets.flatMap(({ name, dataset }, i) =>
      dataset.shards.map((shard) => renumbered(shard, `${name}/${shard.name}`, numbers[i]!)),
    ),
  };
  return new Mixture(parts, { datasets, policy, group, window }, owned);
}

/** Returns undefined if one of the values is undefined. */
function mostOf(counts: readonly (number | undefined)[]): number | undefined {
  return counts.reduce((most, count) =>
    most === undefined || count === undefined ? undefined : Math.max(most, count),
  );
}

/** Returns the shard with changed class numbers. */
function renumbered(shard: ShardFile, name: string, numbers: Int32Array | null): ShardFile {
  if (numbers === null) return { ...shard, name };
  const change = <Part extends Partial<Pick<ShardIndex, 'cls'>>>(index: Part): Part =>
    index.cls === undefined ? index : { ...index, cls: index.cls.map((cls) => (cls < 0 ? cls : (numbers[cls] ?? -1))) };
  return {
    ...shard,
    name,
    loadIndex: async (read) => change(await shard.loadIndex(read)),
    loadParts: async <P extends IndexPart>(parts: readonly P[]) =>
      change((await shard.loadParts(parts)) as PartOfIndex<P> & Partial<ShardIndex>),
  };
}
