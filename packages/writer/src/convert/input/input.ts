import path from 'node:path';
import { Readable } from 'node:stream';
import { OptionError, option, sentence } from '@shardtool/base';
import { codecOfSource, decompressed, layoutOfName, openSource, type WholeCodec } from '@shardtool/format';
import { entryAt, isRemote, type StorageOptions, splitLocation } from '@shardtool/storage';
import type { Naming } from '../../plan/naming.js';
import { type DatasetShards, findDatasetShards } from '../../shard/dataset-shards.js';
import { foreignColumns } from './foreign-columns.js';
import { type NestedTars, openNestedTars, streamOf } from './nested-tars.js';
import { type Recast, type RecastOptions, settleRecast } from './recast.js';
import { type InputChoice, openMixed, openView, type ViewedShards } from './view.js';

/** A tar that can only be read from beginning to end. */
export interface TarStream {
  readonly bytes: Readable;
  /** Name for messages. */
  readonly name: string;
  /** How its files are named; null: as in WebDataset. */
  readonly naming: Naming | null;
  /** Names of the inner tars, if this is a stored tar of tars. */
  readonly folders?: readonly string[];
}

export async function openInput(
  source: string | Readable,
  seen: InputChoice,
  name: string,
  naming: Naming | null,
): Promise<DatasetShards | ViewedShards | TarStream> {
  const nested = typeof source === 'string' && source.endsWith('.tar') ? await nestedTars(source, seen.storage) : null;
  if (nested !== null) {
    refuseViews(seen);
    return { ...nested, name: path.basename(source as string), naming };
  }
  const codec = typeof source === 'string' ? await codecOfTar(source, seen.storage) : null;
  const isStream = typeof source !== 'string' || codec !== null;
  if (!isStream && naming !== null) {
    if (!source.endsWith('.tar') || !(await isFile(source, seen.storage))) {
      const message = sentence`The option ${option('fields')} sets how the files of one tar are named, but ${source} is not a tar; remove it.`;
      throw new OptionError({ path: source }, message);
    }
  } else if (!isStream) {
    if (await isMixtureFile(source)) return openMixed(source, name);
    const input = await withColumns(
      await findDatasetShards(source, {
        layout: seen.layout,
        reading: seen.reading,
        split: seen.overlay === undefined ? seen.split : undefined,
        storage: seen.storage,
        version: seen.version,
      }),
    );
    return (await openView(source, input, seen)) ?? input;
  }
  refuseViews(seen);
  if (typeof source !== 'string') return { bytes: source, name: 'The stream', naming };
  return { bytes: await plainStream(source, codec, seen.storage), name: splitLocation(source).name, naming };
}

function refuseViews(seen: InputChoice): void {
  const given = (['overlay', 'split', 'excludeKeys'] as const).find((option) => seen[option] !== undefined);
  if (given !== undefined)
    throw new OptionError(
      {},
      sentence`The option ${option(given)} is for shards, but a stream is always converted completely; remove it.`,
    );
  if (seen.reading?.links === 'follow') {
    const message = sentence`Links can be followed in an uncompressed tar file of samples, but not in a stream, a compressed tar or a tar of tars: unpack it first, or remove ${option('links')}.`;
    throw new OptionError({}, message);
  }
}

/** A tar of tars is read as a stream, so that it can be split into shards. */
async function nestedTars(source: string, storage: StorageOptions | undefined): Promise<NestedTars | null> {
  return isRemote(source) || (await isFile(source)) ? openNestedTars(source, storage) : null;
}

export type Recasted<Input> = Input & { readonly recast?: Recast | undefined };

/** Returns how classes and columns of shards change. Throws {@link OptionError} for a dataset that has its own. */
export async function recastInput(
  input: DatasetShards | ViewedShards,
  options: RecastOptions,
): Promise<Recasted<DatasetShards | ViewedShards>> {
  const isOurs = input.manifest !== null || 'view' in input || input.classes.length > 0;
  const given = (['labels', 'classes', 'classColumn'] as const).find((name) => options[name] !== undefined);
  if (isOurs && given !== undefined) {
    const message = sentence`The option ${option(given)} is for shards without recorded classes; change the classes of this dataset with "shardtool relabel", then convert.`;
    throw new OptionError({}, message);
  }
  if (isOurs) {
    if (options.where === undefined) return input;
    const columns = input.columns.map(({ name }) => name);
    const recast: Recast = { classes: input.classes, from: 'field', labels: null, where: options.where, columns };
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
  return source.endsWith('.json') && !isRemote(source) && isFile(source);
}

/** How a tar file is compressed, whatever its name; null if it is not. Other layouts have their own compression. */
async function codecOfTar(location: string, storage: StorageOptions | undefined): Promise<WholeCodec | null> {
  const { name } = splitLocation(location);
  const layout = layoutOfName(name);
  if ((layout !== null && layout !== 'tar') || !(await isFile(location, storage))) return null;
  const source = await openSource(location, undefined, storage);
  try {
    return (await codecOfSource(source)) ?? (/\.t?gz$/i.test(name) ? 'gz' : null);
  } finally {
    await source.close();
  }
}

/** The bytes of a file for {@link streamSamples}, which decompresses gzip itself: a file may be named .gz and be a plain tar. */
async function plainStream(
  location: string,
  codec: WholeCodec | null,
  storage: StorageOptions | undefined,
): Promise<Readable> {
  if (codec === null || codec === 'gz') return streamOf(location, storage);
  const source = await openSource(location, undefined, storage);
  return Readable.from(decompressed(source, codec), { objectMode: false });
}

async function isFile(source: string, storage?: StorageOptions): Promise<boolean> {
  return (await entryAt(source, storage)) !== null;
}
