import { FileError, inLanes, ShardtoolError, warn } from '@shardtool/base';
import {
  buildShardIndex,
  decodeShardIndex,
  type FoundShard,
  findSidecars,
  identityOf,
  type LayoutName,
  layoutWith,
  openShard,
  placeSidecar,
  type ReadChoice,
  readShardIndex,
  type ShardIndex,
  walkShardIndex,
  writeShardIndex,
} from '@shardtool/format';
import { isRemote, type StorageOptions, shownLocation } from '@shardtool/storage';
import { inspectionSidecar } from '../inspection-columns.js';
import type { ShardFile } from '../shards/shard-file.js';
import type { StoredParts } from '../stored-dataset.js';
import { partedParts } from './parted.js';

/** Number of shards that are opened at a time. */
const CONCURRENCY = 4;

/**
 * Opens shards of other software as a dataset. Class numbers are those of their `cls` fields. Classes have no names.
 */
export async function foreignParts(
  found: readonly FoundShard[],
  layout: LayoutName,
  columns?: ReadChoice,
): Promise<StoredParts> {
  if (found.length === 0) throw new FileError({}, 'No shards were given: give a folder of shards, or tar files.');
  const { partReader } = await layoutWith(layout, columns);
  if (partReader !== undefined) return partedParts(found, layout, partReader(), columns === undefined);
  const shards = await openAll(found, layout, columns);
  tellLinks(shards);
  const classSamples: number[] = [];
  const fields = new Set<string>();
  for (const { contents } of shards) {
    for (const cls of contents.cls) if (cls >= 0) classSamples[cls] = (classSamples[cls] ?? 0) + 1;
    for (const name of contents.fields.keys()) fields.add(name);
  }
  const marks = shards.map(({ file, content }) => {
    return { file: file.name, samples: file.samples, crc32: content };
  });
  return {
    location: shownLocation(found[0]!.path),
    format: layout,
    identity: identityOf(marks),
    identityOfFirst: (count) => identityOf(marks.slice(0, count)),
    classes: [],
    classSamples: Array.from(classSamples, (samples) => samples ?? 0),
    fields: [...fields].sort(),
    shards: shards.map(({ file }) => file),
    skippedEntries: shards.reduce((sum, shard) => sum + shard.skippedEntries, 0),
  };
}

/** Parts of an index from which the facts about the whole dataset are computed. */
type Contents = Pick<ShardIndex, 'samples' | 'fields' | 'cls'>;

interface ForeignShard {
  readonly file: ShardFile;
  readonly contents: Contents;
  /** Changes when a sample changes. */
  readonly content: string;
  /** Number of links in the shard, if it was walked to open it. */
  readonly links: number;
  /** Number of other entries that belong to no sample, if the shard was walked. */
  readonly skippedEntries: number;
}

/** Warns that samples may be missing that the author of the tar expects. */
function tellLinks(shards: readonly ForeignShard[]): void {
  const first = shards.find(({ links }) => links > 0);
  if (first === undefined) return;
  const links = shards.reduce((sum, shard) => sum + shard.links, 0);
  const message =
    `${links === 1 ? 'A link in a tar was' : `${links} links in tars were`} skipped (in ${first.file.name}): "shardtool convert --links ` +
    'follow" makes shards with the files that links lead to.';
  warn('SHARDTOOL_LINKS_SKIPPED', message);
}

async function openAll(
  found: readonly FoundShard[],
  layout: LayoutName,
  columns: ReadChoice | undefined,
): Promise<ForeignShard[]> {
  return inLanes(found, CONCURRENCY, (shard) => openForeign(shard, layout, columns));
}

/** Opens a shard with the index that is stored next to it. Otherwise makes an index, which stays in memory. */
async function openForeign(
  { name, path, storage }: FoundShard,
  layout: LayoutName,
  columns: ReadChoice | undefined,
): Promise<ForeignShard> {
  const source = await openShard(layout, path, columns, storage);
  try {
    // An index file next to the shard was made for columns with their usual names.
    const indexPath = columns === undefined ? await findSidecars('index', path, storage) : null;
    const findCropIndex = () => findSidecars('crops', path, storage);
    const { size: bytes, version } = source;
    const reading = await layoutWith(layout, columns);
    const { expand, isOpenedByWalk = false } = reading;
    const open = expand && (() => openShard(layout, path, columns, storage));
    const contentOf = isOpenedByWalk ? () => String(bytes) : checksumsOf;
    if (indexPath === null) {
      const skipped = { links: 0, entries: 0 };
      const index = await (isOpenedByWalk ? walkShardIndex : buildShardIndex)(reading, source, (_, __, kind) => {
        if (kind === 'link') skipped.links++;
        else skipped.entries++;
      });
      const { samples } = index;
      if (isRemote(path) && columns === undefined) await keep(path, storage, index);
      return {
        file: {
          name,
          path,
          storage,
          bytes,
          samples,
          version,
          open,
          loadIndex: async () => index,
          loadParts: async () => index,
          findCropIndex,
          loadInspection: inspectionSidecar({ path, storage }, async () => index),
        },
        contents: index,
        content: contentOf(index),
        links: skipped.links,
        skippedEntries: skipped.entries,
      };
    }
    const contents = await readShardIndex(indexPath, { parts: ['fields', 'cls'] });
    return {
      file: {
        name,
        path,
        storage,
        open,
        bytes,
        version,
        samples: contents.samples,
        loadIndex: async (read) =>
          read === undefined ? readShardIndex(indexPath) : decodeShardIndex(await read(indexPath), indexPath),
        loadParts: (parts) => readShardIndex(indexPath, { parts }),
        findCropIndex,
        loadInspection: inspectionSidecar({ path, storage }, () => readShardIndex(indexPath, { parts: ['fields'] })),
      },
      contents,
      content: contentOf(contents),
      links: 0,
      skippedEntries: 0,
    };
  } finally {
    await source.close();
  }
}

/** Keeps the index of a remote shard on this machine, if possible: making it means fetching the whole shard. */
async function keep(path: string, storage: StorageOptions | undefined, index: ShardIndex): Promise<void> {
  try {
    await writeShardIndex(await placeSidecar('index', path, false, storage), index);
  } catch (error) {
    if (!(error instanceof ShardtoolError) && (error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}

/** Returns a hash of the checksums of all fields. */
function checksumsOf({ fields }: Contents): string {
  const sums = [...fields.values()].map(({ crc32 }) => crc32?.reduce((sum, value) => (sum * 31 + value) % 2 ** 32, 7));
  return sums.join('-');
}
