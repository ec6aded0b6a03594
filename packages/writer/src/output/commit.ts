import { dirname, join } from 'node:path';
import { crc32Hex, flushFolder, inLanes, writeAtomically } from '@shardtool/base';
import {
  addTo,
  createManifest,
  entryOf,
  type Manifest,
  type OutputLayout,
  type OutputLayoutName,
  writeManifest,
} from '@shardtool/format';
import { openStorage } from '@shardtool/storage';
import { checkHeld, type HeldOutput } from '../folder-lock.js';
import type { OtherIndex } from '../options.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { readWidsIndex, writeWidsIndex } from '../shard/other-indexes.js';
import { keepVersion } from './keep-version.js';

/** Contents of dataset.json in addition to the facts about the shards. */
export interface DatasetFacts {
  readonly format: OutputLayoutName;
  /** Class names in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: Manifest['columns'];
  readonly otherIndexes: readonly OtherIndex[];
  /** The dataset that the shards are added to. */
  readonly base?: Manifest | undefined;
  /** The current dataset, which is kept as an earlier version. Default: `base`. */
  readonly replaces?: Manifest | undefined;
  /** The lock that is held during the commit: it must not have been taken over. */
  readonly lock: HeldOutput;
  /** See {@link Manifest}. */
  readonly madeFrom?: string | undefined;
  /** Writes a list of all shards for other tools, if the layout has one. */
  readonly list?: OutputLayout['list'];
}

/** A field that some samples have and others lack. */
export interface PartialField {
  readonly name: string;
  /** Number of samples that have it. */
  readonly samples: number;
}

/**
 * Makes the shards, in this order, a dataset, or adds them to one. Writes the wids index if it is requested, the list
 * of the layout, and then dataset.json. Returns the fields that not all samples have.
 */
export async function commitDataset(
  output: string,
  shards: readonly ShardRecord[],
  {
    format,
    classes,
    columns,
    otherIndexes,
    base,
    lock,
    madeFrom = base?.madeFrom,
    list,
    replaces = base,
  }: DatasetFacts,
): Promise<readonly PartialField[]> {
  const classCounts = new Map(base?.classes.map(({ samples }, cls) => [cls, samples]));
  const fieldCounts = new Map(base?.fields.map(({ name, samples }) => [name, samples]));
  for (const shard of shards) {
    for (const [cls, samples] of shard.classCounts) addTo(classCounts, cls, samples);
    for (const [field, samples] of shard.fieldCounts) addTo(fieldCounts, field, samples);
  }
  const manifest = createManifest({
    format,
    classes: classes.map((name, cls) => ({ name, samples: classCounts.get(cls) ?? 0 })),
    fields: [...fieldCounts.keys()].sort().map((name) => ({ name, samples: fieldCounts.get(name)! })),
    columns,
    madeFrom,
    shards: [...(base?.shards ?? []), ...shards.map(manifestShard)],
  });
  if (otherIndexes.includes('wids')) {
    const named = shards.map(({ file, samples, bytes, md5 }) => ({ file, samples, bytes, md5: md5! }));
    await writeWidsIndex(output, base === undefined ? named : [...readWidsIndex(output, base.shards), ...named]);
  }
  if (list !== undefined)
    await writeAtomically(join(output, entryOf(format).listFile!), Buffer.from(list(manifest.shards)));
  await flushFolders(output, shards);
  if (replaces !== undefined) await keepVersion(await openStorage(output), replaces, manifest, 'append');
  checkHeld(lock);
  await writeManifest(output, manifest);
  return manifest.fields.filter(({ samples }) => samples < manifest.samples);
}

/** Number of folders that are flushed concurrently. */
const FLUSHED_AT_ONCE = 8;

/** After a power failure dataset.json must not exist without the shards that it lists. */
async function flushFolders(output: string, shards: readonly ShardRecord[]): Promise<void> {
  const folders = new Set(shards.map(({ file }) => dirname(join(output, file))));
  await inLanes([...folders.add(output)], FLUSHED_AT_ONCE, flushFolder);
}

export function manifestShard({
  file,
  bytes,
  samples,
  crc32,
  maxSampleBytes,
}: ShardRecord): Manifest['shards'][number] {
  return { file, bytes, samples, crc32: crc32Hex(crc32), maxSampleBytes };
}
