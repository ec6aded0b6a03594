import { join } from 'node:path';
import type { ProgressTicker } from '../progress.js';
import type { DigestTable } from './digest-table.js';
import type { EqualSizes } from './equal-sizes.js';
import type { Hasher, HashPartsJob } from './hash-files.js';
import { type ComparedBase, describeImages, packedImages } from './packed-images.js';

/** Adds the lengths of all images of the dataset, so that files of the same length are hashed. */
export async function notePackedSizes(base: ComparedBase, sizes: EqualSizes): Promise<void> {
  for await (const { offset, bytes } of packedImages(base)) {
    for (let row = 0; row < bytes.length; row++) if (offset[row]! >= 0) sizes.note(bytes[row]!);
  }
}

/** Images of one shard that will be hashed. */
interface Candidates {
  readonly shard: number;
  readonly rows: readonly number[];
  readonly job: HashPartsJob;
}

/**
 * Finds the images of the dataset that have the bytes of files in `table`. The indexes have the length and crc32 of
 * each image. If both equal those of a file, the image is read from the shard and hashed. Throws FileError,
 * ShardIndexError, VersionError.
 */
export async function comparePacked(
  base: ComparedBase,
  sizes: EqualSizes,
  table: DigestTable,
  hasher: Hasher,
  ticker: ProgressTicker,
): Promise<void> {
  const candidates: Candidates[] = [];
  let images = 0;
  let total = 0;
  let shard = 0;
  for await (const { offset, bytes, crc32 } of packedImages(base)) {
    const rows: number[] = [];
    for (let row = 0; row < bytes.length; row++) {
      const isThere = offset[row]! >= 0 && sizes.has(bytes[row]!);
      if (isThere && table.hasSum(bytes[row]!, crc32[row]!)) rows.push(row);
    }
    if (rows.length > 0) {
      const path = join(base.folder, base.manifest.shards[shard]!.file);
      const lengths = Float64Array.from(rows, (row) => bytes[row]!);
      const job = { path, first: images, offset: Float64Array.from(rows, (row) => offset[row]!), bytes: lengths };
      candidates.push({ shard, rows, job });
      images += rows.length;
      total += lengths.reduce((sum, length) => sum + length, 0);
    }
    shard++;
  }
  ticker.begin('dedupe', images, total);
  const hashed = new Map<number, Uint8Array>();
  const jobs = candidates.map(({ job }) => job);
  await hasher.parts(jobs, ({ numbers, digests }) => hashed.set(numbers[0]!, digests));
  // The shards are taken in order, so that of several equal images the first is the original.
  for (const { shard: number, rows, job } of candidates) {
    table.addPacked(hashed.get(job.first)!, await describeImages(base, number, rows));
  }
}
