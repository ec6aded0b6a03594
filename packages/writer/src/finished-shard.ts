import { closeSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, crc32Hex, packedName, readShardIndex, ShardtoolError, writeDurably } from '@shardtool/format';
import { pathAt } from './file-table.js';
import type { ShardTarget } from './new-shard.js';
import { finishedPath } from './pack-state.js';
import type { ShardResult } from './shard-job.js';
import { shardPaths } from './shard-paths.js';
import type { ShardPlan } from './shard-plan.js';

/**
 * Notes down that a shard is finished, with all that dataset.json and the report will say of it: one line, the crc32 of
 * the rest in front. `digest` is the plan's. Throws {@link FileError}.
 */
export async function noteFinished(output: string, stem: string, digest: string, result: ShardResult): Promise<void> {
  const { classCounts, fieldCounts, ...rest } = result;
  const json = JSON.stringify({ plan: digest, ...rest, classCounts: [...classCounts], fieldCounts: [...fieldCounts] });
  await writeDurably(finishedPath(output, stem), Buffer.from(`${crc32Hex(crc32(json))} ${json}\n`));
}

/** What was noted of a shard; null where there is no note, or none that can be trusted. */
export function readFinished(output: string, stem: string, digest: string): ShardResult | null {
  let text: string;
  try {
    text = readFileSync(finishedPath(output, stem), 'utf8');
  } catch {
    return null;
  }
  const json = text.slice(9, -1);
  if (text.slice(0, 9) !== `${crc32Hex(crc32(json))} `) return null;
  const { plan, classCounts, fieldCounts, ...rest } = JSON.parse(json);
  if (plan !== digest) return null;
  return { ...rest, classCounts: new Map(classCounts), fieldCounts: new Map(fieldCounts) } as ShardResult;
}

export function forgetFinished(output: string, stem: string): void {
  rmSync(finishedPath(output, stem), { force: true });
}

/**
 * Whether the shard lies there as it was noted down: its file has its size, its index is whole (it carries a crc32 of
 * itself), and has the keys of the plan without the quarantined ones. `recheck` sums the file again.
 */
export async function isAsNoted(
  result: ShardResult,
  plan: ShardPlan,
  { output, layout, otherIndexes }: ShardTarget,
  { stem, fields, recheck }: { stem: string; fields: readonly string[]; recheck: boolean },
): Promise<boolean> {
  const paths = shardPaths(layout, stem);
  if (!hasSize(join(output, paths.file), result.bytes)) return false;
  if (
    otherIndexes.includes('dali') &&
    statSync(join(output, paths.daliIndex), { throwIfNoEntry: false }) === undefined
  ) {
    return false;
  }
  if (!hasKeys(await keysOf(join(output, paths.index)), result, plan, fields)) return false;
  return !recheck || crc32OfFile(join(output, paths.file)) === result.crc32;
}

/** Whether there is a file of this size. */
export function hasSize(path: string, bytes: number): boolean {
  return statSync(path, { throwIfNoEntry: false })?.size === bytes;
}

async function keysOf(index: string): Promise<readonly string[] | null> {
  try {
    return (await readShardIndex(index, { parts: ['key'] })).key;
  } catch (error) {
    if (error instanceof ShardtoolError) return null;
    throw error;
  }
}

function hasKeys(
  keys: readonly string[] | null,
  { quarantined }: ShardResult,
  { samples, fileStart, files }: ShardPlan,
  fields: readonly string[],
): boolean {
  if (keys === null || keys.length + quarantined.length !== samples) return false;
  const bad = new Set(quarantined.map(({ path }) => path));
  let row = 0;
  for (let sample = 0; sample < samples; sample++) {
    const path = pathAt(files, fileStart[sample]!);
    if (!bad.has(path) && packedName(path, fields)!.key !== keys[row++]) return false;
  }
  return row === keys.length;
}

/** Short enough to stay in the processor's cache. */
const PIECE_BYTES = 1 << 20;

function crc32OfFile(path: string): number {
  const fd = openSync(path, 'r');
  try {
    const piece = new Uint8Array(PIECE_BYTES);
    let sum = 0;
    for (;;) {
      const read = readSync(fd, piece, 0, piece.length, null);
      if (read === 0) return sum;
      sum = crc32(piece.subarray(0, read), sum);
    }
  } finally {
    closeSync(fd);
  }
}
