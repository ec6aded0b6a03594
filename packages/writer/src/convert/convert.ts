import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import {
  FileError,
  makeFolder,
  OptionError,
  readManifest,
  type WrittenLayout,
  type WrittenLayoutName,
  withSentences,
} from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import { WorkerCrew } from '../crew/worker-crew.js';
import { NoImagesError } from '../errors.js';
import { type CheckedOutputOptions, checkOutputOptions, type OutputOptions } from '../options.js';
import { commitDataset, type DatasetFacts, type PartialField } from '../output/commit.js';
import { type Destination, namingPlace, openDestination } from '../output/destination.js';
import { OutputFolder } from '../output/output-folder.js';
import { noteName, removeState, STATE_FOLDER } from '../output/pack-state.js';
import { checkShardsThere } from '../output/same-dataset.js';
import { Naming } from '../plan/naming.js';
import { type DatasetShard, type DatasetShards, findDatasetShards } from '../shard/dataset-shards.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import { filesOfShard, numberedStem } from '../shard/shard-paths.js';
import { withProgress } from '../with-progress.js';
import { convertShard } from './convert-shard.js';
import { convertStream } from './convert-stream.js';
import type { ConvertJob, NumberedShard } from './convert-worker.js';
import { foreignColumns } from './foreign-columns.js';
import { type Recast, type RecastOptions, settleRecast } from './recast.js';
import { openMixed, openView, type ViewedShards, type ViewOptions } from './view.js';

/**
 * How shards are converted, and what of them. `maxShardBytes`, `maxShardSamples` and `name` are for streams: other shards
 * keep what they hold.
 */
export interface ConvertOptions extends OutputOptions, ViewOptions, RecastOptions {
  /** Endings as {@link PackOptions.fields} has them: the files of one tar are then named as packing names them. */
  readonly fields?: readonly string[] | undefined;
}

/** What a conversion made. */
export interface ConvertReport {
  readonly samples: number;
  readonly shards: number;
  /** Size of the new shards in bytes. */
  readonly bytes: number;
  /** Files in the input that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
  /** Samples that the labels have no row for, or for which `where` does not hold. */
  readonly leftOut: number;
  /** Fields that not all samples have: some readers want the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** The folder was the dataset of this input and these options already: nothing was written. */
  readonly wasCommitted: boolean;
}

/**
 * Converts shards to another layout in the folder `output`, without decoding images, and commits them with dataset.json.
 * `source` is a dataset, a folder of tars, one shard, a .tar.gz, or a stream of a tar, gzip or not. Each shard becomes
 * one of the same name, with the same samples in the same order; a stream is cut into shards. Throws a
 * {@link ShardtoolError} that says what is wrong; without dataset.json the folder then says that the work did not end, and
 * the same call goes on where it was (a compressed tar begins anew).
 */
export async function convert(
  source: string | Readable,
  output: string,
  options: ConvertOptions = {},
): Promise<ConvertReport> {
  return withSentences(() => convertTo(source, output, options));
}

async function convertTo(
  source: string | Readable,
  output: string,
  { overlay, split, layout: readAs, features, excludeKeys, classes, labels, where, fields, ...options }: ConvertOptions,
): Promise<ConvertReport> {
  const checked = checkOutputOptions(options);
  const layout = await layoutOfChoice(checked);
  checkOtherIndexes(checked.format, checked.index);
  const recast = { classes, labels, where };
  const naming = fields === undefined ? null : new Naming({ fields: fields.map((field) => field.toLowerCase()) });
  const found = await openInput(
    source,
    { overlay, split, layout: readAs, features, excludeKeys },
    checked.name,
    naming,
  );
  const input = 'shards' in found ? await recastInput(found, recast) : found;
  if ('shards' in input) {
    refuseCuts(options);
    await refuseSameFolder(source as string, output);
  }
  checked.signal?.throwIfAborted();
  const destination = await openDestination(output, { ...checked, part: undefined });
  try {
    return await namingPlace(destination, () => convertInto(destination, source, input, layout, checked, recast));
  } finally {
    await destination.close();
  }
}

async function convertInto(
  destination: Destination,
  source: string | Readable,
  input: Recasted<DatasetShards | ViewedShards> | TarStream,
  layout: WrittenLayout,
  checked: CheckedOutputOptions,
  recast: RecastOptions,
): Promise<ConvertReport> {
  const folder = await OutputFolder.open(destination.folder);
  try {
    await destination.fetch(false);
    const madeFrom = await digestOf(source, input, checked, recast);
    const found = folder.lookForSame(madeFrom, checked.overwrite);
    if (found === 'dataset') {
      const report = await presentReport(folder);
      await destination.removeGone();
      return report;
    }
    // A stream begins anew.
    const isBegun = found === 'plan' && 'shards' in input;
    if (!isBegun) {
      await folder.clear();
      await destination.removeGone();
    }
    const report =
      'shards' in input
        ? await convertDataset(input, folder, destination, layout, checked, madeFrom!, isBegun)
        : await convertTarStream(input, folder, destination, layout, checked, madeFrom, recast);
    await destination.commit();
    return report;
  } finally {
    folder.release();
  }
}

/**
 * Of all that the shards are made from: the options and the files, as far as their sizes and times tell. Null for a stream,
 * which nobody knows before it has ended.
 */
async function digestOf(
  source: string | Readable,
  input: Recasted<DatasetShards | ViewedShards> | TarStream,
  { format, lmdbValues, index, maxShardBytes, maxShardSamples, name }: CheckedOutputOptions,
  asked: RecastOptions,
): Promise<string | null> {
  if (typeof source !== 'string') return null;
  const timeOf = async (file: string) => {
    const found = await stat(file).catch(() => null);
    return [path.resolve(file), found?.size, found?.mtimeMs];
  };
  const cut = 'shards' in input ? [] : [maxShardBytes, maxShardSamples, name];
  const hash = createHash('sha256').update(JSON.stringify([format, lmdbValues, index, cut]));
  const recast = 'shards' in input ? (input.recast ?? {}) : asked;
  if (JSON.stringify(recast) !== '{}') {
    hash.update(JSON.stringify([recast, typeof recast.labels === 'string' && (await timeOf(recast.labels))]));
  }
  if (!('shards' in input) && input.naming !== null) hash.update(JSON.stringify(input.naming.rules));
  if (!('shards' in input)) return hash.update(JSON.stringify(await timeOf(source))).digest('hex');
  const { shards, classes, columns } = input;
  hash.update(JSON.stringify([classes, columns, 'view' in input ? input.madeFrom : null]));
  for (const { path: file, indexPath } of shards) {
    hash.update(JSON.stringify([await timeOf(file), indexPath && (await timeOf(indexPath))]));
  }
  return hash.digest('hex');
}

/** A tar that can only be read from its beginning to its end. */
interface TarStream {
  readonly bytes: Readable;
  /** For messages. */
  readonly name: string;
  /** How its files are named; null: as WebDataset does. */
  readonly naming: Naming | null;
}

async function openInput(
  source: string | Readable,
  seen: ViewOptions,
  name: string,
  naming: Naming | null,
): Promise<DatasetShards | ViewedShards | TarStream> {
  if (typeof source === 'string' && !(await isCompressed(source)) && naming !== null) {
    const isTar = source.endsWith('.tar') && ((await stat(source).catch(() => null))?.isFile() ?? false);
    if (!isTar) {
      const message = `The option "fields" says how the files of one tar are named, and ${source} is none; leave it out.`;
      throw new OptionError({ path: source }, message);
    }
  } else if (typeof source === 'string' && !(await isCompressed(source))) {
    if (await isMixtureFile(source)) return openMixed(source, name);
    const input = await withColumns(
      await findDatasetShards(source, {
        layout: seen.layout,
        features: seen.features,
        split: seen.overlay === undefined ? seen.split : undefined,
      }),
    );
    return (await openView(source, input, seen)) ?? input;
  }
  const given = (['overlay', 'split', 'excludeKeys'] as const).find((option) => seen[option] !== undefined);
  if (given !== undefined)
    throw new OptionError({}, `The option "${given}" is for shards; a stream is converted whole.`);
  if (typeof source !== 'string') return { bytes: source, name: 'The stream', naming };
  return { bytes: createReadStream(source, { highWaterMark: 1 << 20 }), name: path.basename(source), naming };
}

type Recasted<Input> = Input & { readonly recast?: Recast | undefined };

/** What becomes of the classes and columns of shards. Throws {@link OptionError} for a dataset that has its own. */
async function recastInput(
  input: DatasetShards | ViewedShards,
  options: RecastOptions,
): Promise<Recasted<DatasetShards | ViewedShards>> {
  const isOurs = input.manifest !== null || 'view' in input || input.classes.length > 0;
  const given = (['labels', 'classes'] as const).find((name) => options[name] !== undefined);
  if (isOurs && given !== undefined) {
    const message = `The option "${given}" is for shards whose classes nobody has noted; give these other ones with "shardtool relabel", then convert.`;
    throw new OptionError({}, message);
  }
  if (isOurs) {
    if (options.where === undefined) return input;
    const recast: Recast = { classes: input.classes, from: 'field', labels: null, where: options.where };
    return { ...input, recast };
  }
  const settled = await settleRecast(input.shards, input.columns, options);
  return settled === null ? input : { ...input, ...settled, classes: settled.recast.classes };
}

/** A dataset without a manifest has the columns of its shards. */
async function withColumns(input: DatasetShards): Promise<DatasetShards> {
  return { ...input, columns: input.columns.length > 0 ? input.columns : await foreignColumns(input.shards) };
}

async function isMixtureFile(source: string): Promise<boolean> {
  return source.endsWith('.json') && ((await stat(source).catch(() => null))?.isFile() ?? false);
}

async function isCompressed(source: string): Promise<boolean> {
  if (!/\.t?gz$/i.test(source)) return false;
  const handle = await open(source).catch((cause: Error) => {
    throw new FileError({ path: source }, `${source} cannot be opened (${cause.message}).`, { cause });
  });
  const isFile = (await handle.stat()).isFile();
  await handle.close();
  return isFile;
}

/** Shards are taken over as they are cut. */
function refuseCuts(options: ConvertOptions): void {
  const given = (['maxShardBytes', 'maxShardSamples', 'name'] as const).find((name) => options[name] !== undefined);
  if (given === undefined) return;
  throw new OptionError(
    {},
    `The option "${given}" is for streams; shards keep their samples and their names, so leave it out.`,
  );
}

/** With `overwrite` the input would be removed before it is read. */
async function refuseSameFolder(source: string, output: string): Promise<void> {
  const placeOf = (place: string) => (isRemote(place) ? place.replace(/\/+$/, '') : realpath(place).catch(() => place));
  const [input, target] = await Promise.all([source, output].map(placeOf));
  if (input !== target && path.dirname(input!) !== target) return;
  throw new OptionError({ path: output }, `${output} is where the input lies; convert to another folder.`);
}

async function convertDataset(
  input: Recasted<DatasetShards | ViewedShards>,
  folder: OutputFolder,
  destination: Destination,
  layout: WrittenLayout,
  options: CheckedOutputOptions,
  madeFrom: string,
  isBegun: boolean,
): Promise<ConvertReport> {
  const { format, lmdbValues, index: otherIndexes, maxSampleBytes } = options;
  const { classes, columns } = input;
  const seen = 'view' in input ? input : null;
  // A shard of which nothing is left becomes none.
  const numbered = input.shards.map((shard, number) => ({ shard, number }));
  const taken = numbered.filter(({ number }) => seen === null || seen.samples[number]! > 0);
  const shards = taken.map(({ shard }) => shard);
  const sourceBytes = shards.reduce((sum, { bytes }) => sum + bytes, 0);
  const { isElsewhere } = destination;
  if (!isElsewhere) folder.checkRoom(sourceBytes);
  const stems = shards.map(({ stem }) => stem);
  if (isBegun) folder.keepNoted();
  else await folder.announce(layout, stems, otherIndexes, { madeFrom });
  await destination.sendNotes();
  makeFolder(path.join(folder.path, STATE_FOLDER));
  const columnTypes = new Map(columns.map(({ name, type }) => [name, type]));
  const common = { columnTypes, otherIndexes, maxSampleBytes };
  const target = { output: folder.path, layout: { format, lmdbValues }, ...common, madeFrom, isElsewhere };
  const script = new URL('./convert-worker.js', import.meta.url);
  const size = Math.max(1, Math.min(options.workers, shards.length));
  const crew = new WorkerCrew<ConvertJob, NumberedShard>(script, size);
  return withProgress(crew, options, async (ticker) => {
    ticker.begin(
      'convert',
      shards.reduce((sum, { record }) => sum + (record?.samples ?? 0), 0),
      sourceBytes,
    );
    const done: NumberedShard[] = [];
    try {
      const jobs = taken.map(
        ({ shard, number }): ConvertJob => ({
          shard: number,
          input: shard,
          target,
          view: seen?.view,
          recast: input.recast ?? null,
        }),
      );
      await crew.run(jobs, async (shard) => {
        done.push(shard);
        const { stem } = input.shards[shard.shard]!;
        if (!shard.isKept) await destination.sendShard(filesOfShard(layout, stem, otherIndexes), noteName(stem));
      });
    } catch (error) {
      await crew.close();
      folder.removeTemporaryFiles(layout);
      throw error;
    }
    await destination.whenSent();
    done.sort((a, b) => a.shard - b.shard);
    const skippedEntries = done.reduce((sum, shard) => sum + shard.skippedEntries, 0);
    const left = done.filter(({ samples }) => samples > 0);
    if (left.length === 0 && done.length > 0 && input.recast !== undefined) refuseNothing();
    return commit(
      folder,
      input.recast === undefined ? done : left,
      { format, classes, columns, otherIndexes, madeFrom: seen?.madeFrom },
      skippedEntries,
      done.reduce((sum, shard) => sum + shard.leftOut, 0),
    );
  });
}

/** One thread does it: a stream can be read in one place only. */
async function convertTarStream(
  { bytes: input, name, naming }: TarStream,
  folder: OutputFolder,
  destination: Destination,
  layout: WrittenLayout,
  options: CheckedOutputOptions,
  madeFrom: string | null,
  asked: RecastOptions,
): Promise<ConvertReport> {
  const { format, index: otherIndexes, maxShardBytes, maxShardSamples, maxSampleBytes, signal } = options;
  const done = { files: 0, bytes: 0 };
  const stop = () => {
    input.destroy();
  };
  return withProgress({ done, stop, close: async () => stop() }, options, async (ticker) => {
    ticker.begin('convert');
    let isHeld: boolean | undefined;
    const target = { output: folder.path, layout, columnTypes: new Map(), otherIndexes, maxSampleBytes };
    const { shards, skippedEntries } = await convertStream(input, name, naming, target, {
      maxShardBytes,
      maxShardSamples,
      begin: async (number) => {
        const stem = numberedStem(options.name, number);
        await folder.announce(layout, [stem], otherIndexes, { madeFrom: madeFrom ?? undefined });
        await destination.sendNotes();
        return stem;
      },
      made: async (stem) => {
        const files = filesOfShard(layout, stem, otherIndexes);
        // Where classes are known at the end alone, all shards are written once more.
        isHeld ??= await mayChange(shardAt(folder.path, files, stem, format), asked);
        if (!isHeld) await destination.sendShard(files, null, files.slice(0, -1));
      },
      report: (samples, bytes) => {
        done.files += samples;
        done.bytes += bytes;
        signal?.throwIfAborted();
      },
    });
    await destination.whenSent();
    if (shards.length === 0) throw new NoImagesError({}, `${name} holds no sample, so there is nothing to convert.`);
    const facts = { format, classes: [], columns: [], otherIndexes };
    if (!isHeld) return commit(folder, shards, facts, skippedEntries);
    const filesOf = (number: number) => filesOfShard(layout, numberedStem(options.name, number), otherIndexes);
    const written = shards.map((_, i) => shardAt(folder.path, filesOf(i), numberedStem(options.name, i), format));
    const settled = await settleRecast(written, [], asked);
    const columnTypes = new Map((settled?.columns ?? []).map((column) => [column.name, column.type]));
    const left: ShardRecord[] = [];
    for (const [i, shard] of written.entries()) {
      const stop = () => signal?.throwIfAborted();
      const renewed =
        settled === null
          ? shards[i]!
          : await convertShard(shard, { ...target, columnTypes }, stop, undefined, settled.recast);
      if (renewed.samples === 0) continue;
      left.push(renewed);
      await destination.sendShard(filesOf(i), null, filesOf(i).slice(0, -1));
    }
    await destination.whenSent();
    if (left.length === 0) refuseNothing();
    const all = { ...facts, classes: settled?.recast.classes ?? [], columns: settled?.columns ?? [] };
    const before = shards.reduce((sum, { samples }) => sum + samples, 0);
    const after = left.reduce((sum, { samples }) => sum + samples, 0);
    return commit(folder, left, all, skippedEntries, before - after);
  });
}

function refuseNothing(): never {
  const message = 'No sample is left to convert: widen "where", or see whether the labels name these samples.';
  throw new NoImagesError({}, message);
}

/** A shard that was just written, with its index. */
function shardAt(folder: string, files: readonly string[], stem: string, format: WrittenLayoutName): DatasetShard {
  const file = files.at(-1)!;
  const indexPath = path.join(folder, files[0]!);
  const place = { path: path.join(folder, file), indexPath, cropsPath: null };
  return { name: file, stem, format, bytes: 0, record: null, ...place };
}

/** Whether samples of a stream become others than they are, by what its first shard has. */
async function mayChange(first: DatasetShard, asked: RecastOptions): Promise<boolean> {
  return (await settleRecast([first], [], asked)) !== null;
}

async function commit(
  folder: OutputFolder,
  shards: readonly ShardRecord[],
  facts: DatasetFacts,
  skippedEntries: number,
  leftOut = 0,
): Promise<ConvertReport> {
  const partialFields = await commitDataset(folder.path, shards, facts);
  removeState(folder.path);
  const total = (count: (shard: ShardRecord) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
  return {
    samples: total(({ samples }) => samples),
    shards: shards.length,
    bytes: total(({ bytes }) => bytes),
    skippedEntries,
    leftOut,
    partialFields,
    wasCommitted: false,
  };
}

/** Of a folder that holds what was to be made. */
async function presentReport({ path: output }: OutputFolder): Promise<ConvertReport> {
  const manifest = await readManifest(output);
  checkShardsThere(output, manifest);
  removeState(output);
  const { samples, shards, bytes, fields } = manifest;
  const partialFields = fields.filter((field) => field.samples < samples);
  return { samples, shards: shards.length, bytes, skippedEntries: 0, leftOut: 0, partialFields, wasCommitted: true };
}
