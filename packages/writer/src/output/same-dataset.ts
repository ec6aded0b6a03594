import { join } from 'node:path';
import { FileError, option, ShardtoolError, sentence } from '@shardtool/base';
import { type Manifest, readManifest, readShardIndex, type WrittenLayout } from '@shardtool/format';
import type { ShardPlan } from '../plan/shard-plan.js';
import { numberedStem, shardPaths } from '../shard/shard-paths.js';
import { pathAt } from '../source/file-table.js';
import { readQuarantine } from './quarantine.js';
import { hasSize } from './shard-note.js';

/**
 * True if the dataset in a folder is the result of a plan: its shards have the plan's names, and their samples come
 * from the plan's files, in order, without quarantined ones.
 */
export async function isDatasetOf(
  output: string,
  layout: WrittenLayout,
  name: string,
  { shards, shardCount }: { readonly shards: () => Iterable<ShardPlan>; readonly shardCount: number },
): Promise<boolean> {
  const manifest = await readManifest(output);
  if (manifest.shards.length !== shardCount) return false;
  const bad = new Set(readQuarantine(output).map(({ path }) => path));
  let number = 0;
  for (const { samples, fileStart, files } of shards()) {
    const paths = shardPaths(layout, numberedStem(name, number));
    if (manifest.shards[number++]!.file !== paths.file) return false;
    const source = await sourcesIn(join(output, paths.index));
    let row = 0;
    for (let sample = 0; sample < samples; sample++) {
      const path = pathAt(files, fileStart[sample]!);
      if (!bad.has(path) && path !== source?.[row++]) return false;
    }
    if (row !== source?.length) return false;
  }
  return true;
}

/** Throws FileError if a shard of the dataset is missing, or has another size. */
export function checkShardsThere(output: string, { shards }: Pick<Manifest, 'shards'>): void {
  const gone = shards.find(({ file, bytes }) => !hasSize(join(output, file), bytes));
  if (gone === undefined) return;
  const path = join(output, gone.file);
  throw new FileError(
    { path },
    sentence`${path} is missing or differs from dataset.json; run "shardtool verify ${output}", or pack again with ${option('overwrite')}.`,
  );
}

async function sourcesIn(index: string): Promise<readonly string[] | null> {
  try {
    return (await readShardIndex(index, { parts: ['source'] })).source;
  } catch (error) {
    if (error instanceof ShardtoolError) return null;
    throw error;
  }
}
