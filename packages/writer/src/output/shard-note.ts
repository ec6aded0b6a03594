import { closeSync, existsSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, crc32Hex, writeAtomically } from '@shardtool/base';
import { sidecarOfShard } from '@shardtool/format';
import type { ShardRecord, ShardTarget } from '../shard/new-shard.js';
import { shardPaths } from '../shard/shard-paths.js';
import { shardNotePath } from './pack-state.js';

/** A shard as noted: its result, and how to recognize it. */
export type NotedShard<Result extends ShardRecord> = Result & {
  /**
   * crc32 of the index file. If it matches, the keys are those of the plan, and the index has the crc32 of every field.
   */
  readonly indexCrc32: number;
};

/**
 * Notes that a shard is finished, with everything that dataset.json and the report need: one line that starts with the
 * crc32 of the rest. `digest` is that of the plan, or of what is converted. Throws {@link FileError}.
 */
export async function noteShard(
  { output, layout }: ShardTarget,
  stem: string,
  digest: string,
  result: ShardRecord,
): Promise<void> {
  const { classCounts, fieldCounts, ...rest } = result;
  const indexCrc32 = crc32OfFile(join(output, shardPaths(layout, stem).index));
  const counts = { classCounts: [...classCounts], fieldCounts: [...fieldCounts] };
  await writeAtomically(shardNotePath(output, stem), noteText({ plan: digest, ...rest, indexCrc32, ...counts }));
}

/** Returns the note of a shard; null if it is missing or cannot be trusted. */
export function readShardNote<Result extends ShardRecord>(
  output: string,
  stem: string,
  digest: string,
): NotedShard<Result> | null {
  const noted = readNoteText<{ plan: string; classCounts: [number, number][]; fieldCounts: [string, number][] }>(
    shardNotePath(output, stem),
  );
  if (noted === null) return null;
  const { plan, classCounts, fieldCounts, ...rest } = noted;
  if (plan !== digest) return null;
  return {
    ...rest,
    classCounts: new Map(classCounts),
    fieldCounts: new Map(fieldCounts),
  } as unknown as NotedShard<Result>;
}

/** Returns the contents of a note; null if it is missing or cannot be trusted. */
export function readNoteText<Noted>(path: string): Noted | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return null;
  }
  const json = text.slice(9, -1);
  return text.slice(0, 9) === `${crc32Hex(crc32(json))} ` ? JSON.parse(json) : null;
}

/** Rewrites a note with additional values. */
export async function addToNote(path: string, more: object): Promise<void> {
  await writeAtomically(path, noteText({ ...readNoteText<object>(path), ...more }));
}

/** Text of a note: the crc32 of its JSON, then the JSON. */
export function noteText(noted: object): Uint8Array {
  const json = JSON.stringify(noted);
  return Buffer.from(`${crc32Hex(crc32(json))} ${json}\n`);
}

export function removeShardNote(output: string, stem: string): void {
  rmSync(shardNotePath(output, stem), { force: true });
}

/**
 * True if the shard matches its note: its file has the noted size, and its index equals the one that was written with
 * it, byte for byte. `recheck` verifies the checksum of the file.
 */
export function isAsNoted(
  { bytes, crc32: expected, indexCrc32 }: NotedShard<ShardRecord>,
  stem: string,
  { output, layout, otherIndexes }: ShardTarget,
  recheck: boolean,
): boolean {
  const paths = shardPaths(layout, stem);
  const file = join(output, paths.file);
  if (!hasSize(file, bytes)) return false;
  if (sidecarOfShard(file, otherIndexes).some((sidecar) => !existsSync(sidecar))) return false;
  try {
    if (crc32OfFile(join(output, paths.index)) !== indexCrc32) return false;
    return !recheck || crc32OfFile(file) === expected;
  } catch {
    // Unreadable shards are packed again.
    return false;
  }
}

/** True if there is a file of this size. */
export function hasSize(path: string, bytes: number): boolean {
  return statSync(path, { throwIfNoEntry: false })?.size === bytes;
}

/** Small enough for the processor's cache. */
const PIECE_BYTES = 1 << 20;

/** The crc32 of a whole file. */
export function crc32OfFile(path: string): number {
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
