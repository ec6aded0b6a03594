import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { checkLocation, checkObject, inLanes, OptionError, option, sentence, withMessages } from '@shardtool/base';
import {
  type ChosenColumns,
  entryOf,
  isTableLayout,
  type LinkChoice,
  type OutputLayoutName,
  PACK_NOTE_FILE,
  type ReadChoice,
} from '@shardtool/format';
import { entryAt, isRemote } from '@shardtool/storage';
import { type CheckedConvertOptions, checkConvertOptions, type OutputOptions } from '../options.js';
import { atDestination, type Destination, openDestination } from '../output/destination.js';
import { OutputFolder } from '../output/output-folder.js';
import { readShardNote } from '../output/shard-note.js';
import { Naming } from '../plan/naming.js';
import { endingOnProgressError } from '../progress.js';
import type { DatasetShards } from '../shard/dataset-shards.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import { convertDataset } from './convert-dataset.js';
import { openInput, type Recasted, recastInput, type TarStream } from './input/input.js';
import type { RecastOptions } from './input/recast.js';
import { renamed } from './input/renamed.js';
import type { ViewedShards, ViewOptions } from './input/view.js';
import { type ConvertReport, madeReport } from './report.js';
import { reshard } from './reshard/reshard.js';
import { convertTarStream, refuseStream } from './stream/convert-tar.js';

/**
 * Options of a conversion. Shards keep their samples and names, unless `maxShardBytes`, `maxShardSamples`, `seed` or
 * `sortBy` is given: the samples of all shards are then written to new shards.
 */
export interface ConvertOptions extends Omit<OutputOptions, 'format'>, ViewOptions, RecastOptions {
  /**
   * Format of the new shards: in addition to those of `pack`, Parquet for the Hugging Face Hub, TFRecord, and
   * MosaicML's MDS.
   */
  readonly format?: OutputLayoutName | undefined;
  /**
   * Links in tars. `skip` counts them; `follow` uses the file in the same tar that the link points to. Default: `skip`.
   */
  readonly links?: LinkChoice | undefined;
  /** Shuffles the samples of all shards with this seed. Needs temporary disk space of the size of the dataset. */
  readonly seed?: number | undefined;
  /**
   * Sorts the samples of all shards by this column: a label column, `key`, `class`, `bytes`, `width`, `height` or
   * `source`. Missing values are last. Samples with equal values keep their order, or are shuffled if `seed` is given.
   */
  readonly sortBy?: string | undefined;
  /** Extensions as in {@link PackOptions.fields}. The files of one tar are then named as packing names them. */
  readonly fields?: readonly string[] | undefined;
}

/**
 * Converts shards to another format in the folder `output`, without decoding images, and writes dataset.json. `source`
 * is a dataset, a folder of tars, one shard, a .tar.gz or .tar.zst, or a stream of a tar, compressed with gzip or not. Each shard
 * becomes one of the same name, with the same samples in the same order, unless the options divide or order the samples
 * again; a stream is split into shards. Throws a {@link
 * ShardtoolError}. Without dataset.json the folder is marked as unfinished, and the same call resumes the conversion (a
 * compressed tar, and a conversion to shards of other sizes or another order, starts again).
 */
export async function convert(
  source: string | Readable,
  output: string,
  options: ConvertOptions = {},
): Promise<ConvertReport> {
  // Another implementation of streams, such as that of tar-stream, is accepted too.
  const isStream = typeof source === 'object' && source !== null && Symbol.asyncIterator in source;
  if (!isStream) checkLocation('convert', source);
  checkLocation('convert', output);
  checkObject('convert', options);
  return endingOnProgressError(options, (given) => withMessages(() => convertTo(source, output, given)));
}

async function convertTo(
  source: string | Readable,
  output: string,
  {
    overlay,
    split,
    version,
    layout: readAs,
    features,
    excludeKeys,
    classes,
    classColumn,
    labels,
    where,
    fields,
    links,
    ...options
  }: ConvertOptions,
): Promise<ConvertReport> {
  const checked = checkConvertOptions(options);
  const { format } = checked;
  if (!isTableLayout(format)) await layoutOfChoice({ format, lmdbValues: checked.lmdbValues });
  checkOtherIndexes(checked.format, checked.index);
  const recast = { classes, classColumn, labels, where, storage: checked.storage };
  const naming = fields === undefined ? null : new Naming({ fields: fields.map((field) => field.toLowerCase()) });
  const found = await openInput(
    source,
    {
      overlay,
      split,
      version,
      layout: readAs,
      reading: readingOf(features, links),
      excludeKeys,
      storage: checked.storage,
    },
    checked.name,
    naming,
  );
  const isResharded = RESHARDING.some((option) => options[option] !== undefined);
  const recasted = 'shards' in found ? await recastInput(found, recast) : found;
  const input = 'shards' in recasted && !isResharded ? renamed(recasted, checked) : recasted;
  if (!('shards' in input) && isTableLayout(format)) refuseStream(input.name, format);
  if (!('shards' in input)) refuseOrder(checked, input.name);
  if ('shards' in input) {
    if (!isResharded) refuseName(options, format);
    await refuseSameFolder(source as string, input.shards, output);
  }
  checked.signal?.throwIfAborted();
  return atDestination(await openDestination(output, { ...checked, part: undefined }), (destination) =>
    convertInto(destination, source, input, checked, recast, isResharded),
  );
}

/** Undefined if no choice was made: an index next to the shard then decides. */
function readingOf(features: ChosenColumns | undefined, links: LinkChoice | undefined): ReadChoice | undefined {
  return links === 'follow' ? { ...features, links } : features;
}

async function convertInto(
  destination: Destination,
  source: string | Readable,
  input: Recasted<DatasetShards | ViewedShards> | TarStream,
  checked: CheckedConvertOptions,
  recast: RecastOptions,
  isResharded: boolean,
): Promise<ConvertReport> {
  const folder = await OutputFolder.open(destination.folder);
  try {
    await destination.fetch(false);
    const madeFrom = await digestOf(source, input, checked, recast, isResharded);
    const found = folder.lookForSame(madeFrom, checked.overwrite);
    if (found === 'dataset') {
      const report = await madeReport(folder);
      await destination.removeGone();
      return report;
    }
    // A stream always starts again, and so do samples in new shards.
    const isBegun = found === 'plan' && 'shards' in input && !isResharded;
    if (!isBegun) {
      await folder.clear();
      await destination.removeGone();
    }
    const converting = !('shards' in input)
      ? convertTarStream(input, folder, destination, checked, madeFrom, recast)
      : isResharded
        ? reshard(input, folder, destination, checked, madeFrom!)
        : convertDataset(input, folder, destination, checked, madeFrom!, isBegun);
    const report = await converting.catch(async (error) => {
      const isStopped = checked.signal?.aborted === true;
      if (!isBegun && !isStopped && !hasFinished(folder, madeFrom)) await removeMade(folder, destination);
      throw error;
    });
    await destination.commit();
    return report;
  } finally {
    folder.release();
  }
}

/**
 * True if there is a shard with samples that the same call would keep. Shards of a stream have no notes, because a
 * stream starts again.
 */
function hasFinished(folder: OutputFolder, madeFrom: string | null): boolean {
  if (madeFrom === null || !existsSync(path.join(folder.path, PACK_NOTE_FILE))) return false;
  return folder.noted().shards.some((stem) => (readShardNote(folder.path, stem, madeFrom)?.samples ?? 0) > 0);
}

/** No shard with samples was finished, so all files are removed. The original error is thrown even if this fails. */
async function removeMade(folder: OutputFolder, destination: Destination): Promise<void> {
  await folder.clear().catch(() => undefined);
  await destination.removeGone().catch(() => undefined);
}

/**
 * Digest of everything that the shards are made from: the options and the files, by their sizes and times. Null for a
 * stream, which is unknown before it has ended.
 */
async function digestOf(
  source: string | Readable,
  input: Recasted<DatasetShards | ViewedShards> | TarStream,
  { format, lmdbValues, index, maxShardBytes, maxShardSamples, name, seed, sortBy, storage }: CheckedConvertOptions,
  asked: RecastOptions,
  isResharded: boolean,
): Promise<string | null> {
  if (typeof source !== 'string') return null;
  const timeOf = async (file: string) => {
    if (isRemote(file)) return [file, (await entryAt(file, storage))?.version];
    const found = await stat(file).catch(() => null);
    return [path.resolve(file), found?.size, found?.mtimeMs];
  };
  const whole = name === '' ? [] : [name];
  const ordered = isResharded ? [seed ?? null, sortBy ?? null] : [];
  const cut = 'shards' in input && !isResharded ? whole : [maxShardBytes, maxShardSamples, name, ...ordered];
  const hash = createHash('sha256').update(JSON.stringify([format, lmdbValues, index, cut]));
  const recast = 'shards' in input ? (input.recast ?? {}) : asked;
  if (JSON.stringify(recast) !== '{}') {
    hash.update(JSON.stringify([recast, typeof recast.labels === 'string' && (await timeOf(recast.labels))]));
  }
  if (!('shards' in input) && input.naming !== null) hash.update(JSON.stringify(input.naming.rules));
  if (!('shards' in input)) return hash.update(JSON.stringify(await timeOf(source))).digest('hex');
  const { shards, classes, columns } = input;
  hash.update(JSON.stringify([classes, columns, 'view' in input ? input.madeFrom : null]));
  const reading = shards[0]?.reading;
  if (reading !== undefined) hash.update(JSON.stringify(reading));
  const times = await inLanes(shards, LOOKED_AT_ONCE, async ({ path: file, indexPath }) => [
    await timeOf(file),
    indexPath && (await timeOf(indexPath)),
  ]);
  for (const time of times) hash.update(JSON.stringify(time));
  return hash.digest('hex');
}

/** Number of files whose times are looked up concurrently. */
const LOOKED_AT_ONCE = 32;

/** Options that divide or order samples again. */
const RESHARDING = ['maxShardBytes', 'maxShardSamples', 'seed', 'sortBy'] as const;

/** Shards that keep their samples keep their names. */
function refuseName({ name }: ConvertOptions, format: OutputLayoutName): void {
  if (name === undefined || entryOf(format).stemOf !== undefined) return;
  const message = sentence`The option ${option('name')} is for new shards, but converted shards keep their samples and names: remove it, or also set ${option('maxShardBytes')}.`;
  throw new OptionError({}, message);
}

/** A stream is read once, from the beginning to the end. */
function refuseOrder({ seed, sortBy }: CheckedConvertOptions, name: string): void {
  const given = seed !== undefined ? 'seed' : sortBy !== undefined ? 'sortBy' : null;
  if (given === null) return;
  const message = sentence`The option ${option(given)} orders samples of shards, but ${name} is a stream: convert it without this option, then convert the shards.`;
  throw new OptionError({}, message);
}

/** With `overwrite` the input would be deleted before it is read. If `source` is a pattern, `shards` may be in several folders. */
async function refuseSameFolder(
  source: string,
  shards: readonly { readonly path: string }[],
  output: string,
): Promise<void> {
  const placeOf = (place: string) => (isRemote(place) ? place.replace(/\/+$/, '') : realpath(place).catch(() => place));
  const folders = new Set(shards.map((shard) => path.dirname(shard.path)));
  const [target, input, ...ofShards] = await Promise.all([output, source, ...folders].map(placeOf));
  if (input !== target && path.dirname(input!) !== target && !ofShards.includes(target!)) return;
  throw new OptionError({ path: output }, `${output} is also the folder of the input; convert to another folder.`);
}
