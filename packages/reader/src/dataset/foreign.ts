import { stat } from 'node:fs/promises';
import path from 'node:path';
import {
  buildShardIndex,
  FileError,
  identityOf,
  indexPathOf,
  layoutOf,
  openSource,
  readShardIndex,
  type ShardIndex,
} from '@shardtool/format';
import type { DatasetParts } from './dataset.js';
import type { ShardFile } from './shard-files.js';

/** Tars that other software wrote, as a dataset. Class numbers are those of their `cls` fields, without names. */
export async function foreignParts(tars: readonly string[]): Promise<DatasetParts> {
  if (tars.length === 0) throw new FileError({}, 'No shards were given: name a folder of shards, or tar files.');
  const shards: ShardFile[] = [];
  const contents: Parameters<typeof identityOf>[0][number][] = [];
  const classSamples: number[] = [];
  const fields = new Set<string>();
  for (const tar of tars) {
    const { file, index } = await foreignShard(tar);
    shards.push(file);
    contents.push({ file: file.name, samples: file.samples, crc32: contentOf(index) });
    for (const cls of index.cls) if (cls >= 0) classSamples[cls] = (classSamples[cls] ?? 0) + 1;
    for (const name of index.fields.keys()) fields.add(name);
  }
  return {
    location: tars[0]!,
    format: 'tar',
    identity: identityOf(contents),
    classes: [],
    classSamples: Array.from(classSamples, (samples) => samples ?? 0),
    fields: [...fields].sort(),
    shards,
  };
}

/** With the index that is kept beside the tar if that is newer, else with one that is made now and stays in memory. */
async function foreignShard(tar: string): Promise<{ file: ShardFile; index: ShardIndex }> {
  const source = await openSource(tar);
  try {
    const kept = await keptIndex(tar);
    const index = kept ?? (await buildShardIndex(await layoutOf('tar'), source));
    const file: ShardFile = {
      name: path.basename(tar),
      path: tar,
      bytes: source.size,
      samples: index.samples,
      loadKeys: async () => (kept === null ? index.key : (await readShardIndex(indexPathOf(tar), { parts: ['key'] })).key),
      loadIndex: async () => (kept === null ? index : readShardIndex(indexPathOf(tar))),
    };
    return { file, index };
  } finally {
    await source.close();
  }
}

async function keptIndex(tar: string): Promise<ShardIndex | null> {
  const indexPath = indexPathOf(tar);
  const [made, packed] = await Promise.all([stat(indexPath).catch(() => null), stat(tar)]);
  if (made === null || made.mtimeMs < packed.mtimeMs) return null;
  return readShardIndex(indexPath);
}

/** Changes when a sample does: the checksums of all fields. */
function contentOf(index: ShardIndex): string {
  const sums = [...index.fields.values()].map(({ crc32 }) => crc32.reduce((sum, value) => (sum * 31 + value) % 2 ** 32, 7));
  return sums.join('-');
}
