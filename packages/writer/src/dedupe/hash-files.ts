import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import type { SourceFiles } from '../source-files.js';

/** Of a sha256, in bytes. */
export const DIGEST_BYTES = 32;

const PIECE_BYTES = 1 << 20;

/** Numbers of files that are to be hashed. */
export interface HashJob {
  readonly numbers: Uint32Array;
}

/** Their digests, one behind the other, in the same order; zeros for a file that cannot be read, as packing it will say. */
export interface HashedFiles extends HashJob {
  readonly digests: Uint8Array;
}

/** Takes the sha256 of files below `root` (with a "/" at its end). `report` hears of each file and its bytes. */
export function hashFiles(
  root: string,
  files: SourceFiles,
  { numbers }: HashJob,
  report: (files: number, bytes: number) => void,
): HashedFiles {
  const digests = new Uint8Array(numbers.length * DIGEST_BYTES);
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  const reader = files.reader();
  for (const [i, number] of numbers.entries()) {
    const digest = hashFile(root + reader.path(number), piece);
    if (digest !== null) digests.set(digest, i * DIGEST_BYTES);
    report(1, reader.bytes(number));
  }
  return { numbers, digests };
}

function hashFile(path: string, piece: Buffer): Uint8Array | null {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const hash = createHash('sha256');
    for (let read = readSync(fd, piece); read > 0; read = readSync(fd, piece)) hash.update(piece.subarray(0, read));
    return hash.digest();
  } catch {
    return null;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
