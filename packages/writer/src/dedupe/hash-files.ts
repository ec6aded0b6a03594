import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { crc32 } from '@shardtool/base';
import { takeFiles } from '../plan/shard-plan.js';
import type { FileAccess } from '../source/ahead/file-access.js';
import { FilesAhead } from '../source/ahead/files-ahead.js';
import type { InFlight } from '../source/ahead/in-flight.js';
import type { SourceFiles } from '../source/source-files.js';

/** Length of a sha256 digest, in bytes. */
export const DIGEST_BYTES = 32;

const PIECE_BYTES = 1 << 20;

/** Numbers of files to hash. */
export interface HashJob {
  readonly numbers: Uint32Array;
}

/** Their digests, concatenated in the same order; zeros for a file that cannot be read, which packing then reports. */
export interface HashedFiles extends HashJob {
  readonly digests: Uint8Array;
  readonly crc32: Uint32Array;
}

/** Offsets and lengths of parts of one file to hash. `first` is the number of the first part. */
export interface HashPartsJob {
  readonly path: string;
  readonly first: number;
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
}

/** Runs hash jobs, in any order, and passes on the digests of each job as they arrive. */
export interface Hasher {
  files(numbers: Uint32Array, done: (hashed: HashedFiles) => void): Promise<void>;
  parts(jobs: readonly HashPartsJob[], done: (hashed: HashedFiles) => void): Promise<void>;
}

/** Called for each file, or part of a file, with its bytes. */
type Report = (files: number, bytes: number) => void;

/** Computes the sha256 of files below `root` (with a trailing "/"). */
export function hashFiles(root: string, files: SourceFiles, { numbers }: HashJob, report: Report): HashedFiles {
  const hashed = new Hashed(numbers);
  const reader = files.reader();
  for (const [i, number] of numbers.entries()) {
    hashed.take(i, root + reader.path(number), [{ offset: 0, bytes: Number.POSITIVE_INFINITY }]);
    report(1, reader.bytes(number));
  }
  return hashed.result;
}

/** Like {@link hashFiles}, but reads many files concurrently. Throws `SourceTimeoutError`. */
export async function hashFilesAhead(
  root: string,
  files: SourceFiles,
  { numbers }: HashJob,
  flight: InFlight,
  access: FileAccess,
  report: Report,
): Promise<HashedFiles> {
  const hashed = new Hashed(numbers);
  const table = takeFiles(files, numbers);
  const ahead = new FilesAhead(root, table, flight, access, false);
  try {
    for (let i = 0; i < numbers.length; i++) {
      const content = new Uint8Array(Math.max(0, table.bytes[i]!));
      const [file] = await ahead.take(i, i + 1);
      if (isPut(file!.put!, content)) hashed.takeContent(i, content);
      report(1, table.bytes[i]!);
    }
  } finally {
    ahead.close();
  }
  return hashed.result;
}

/** False for a file that cannot be read, which packing then reports. */
function isPut(put: (place: Uint8Array) => void, place: Uint8Array): boolean {
  try {
    put(place);
    return true;
  } catch {
    return false;
  }
}

/** Computes the sha256 of parts of a file, which are numbered from `first`. */
export function hashParts({ path, first, offset, bytes }: HashPartsJob, report: Report): HashedFiles {
  const hashed = new Hashed(Uint32Array.from(offset, (_, i) => first + i));
  hashed.take(
    0,
    path,
    Array.from(offset, (from, i) => ({ offset: from, bytes: bytes[i]! })),
  );
  report(
    offset.length,
    bytes.reduce((sum, length) => sum + length, 0),
  );
  return hashed.result;
}

class Hashed {
  readonly result: HashedFiles;
  readonly #piece = Buffer.allocUnsafeSlow(PIECE_BYTES);

  constructor(numbers: Uint32Array) {
    const digests = new Uint8Array(numbers.length * DIGEST_BYTES);
    this.result = { numbers, digests, crc32: new Uint32Array(numbers.length) };
  }

  /** Hashes parts of a file; the first has index `at` in the result. */
  take(at: number, path: string, parts: readonly { readonly offset: number; readonly bytes: number }[]): void {
    let fd: number | undefined;
    try {
      fd = openSync(path, 'r');
      for (const [i, { offset, bytes }] of parts.entries()) this.#hash(at + i, fd, offset, bytes);
    } catch {
      // Unreadable parts keep their zeros.
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }

  /** Hashes a file that is in memory. */
  takeContent(at: number, content: Uint8Array): void {
    this.result.digests.set(createHash('sha256').update(content).digest(), at * DIGEST_BYTES);
    this.result.crc32[at] = crc32(content);
  }

  #hash(at: number, fd: number, offset: number, bytes: number): void {
    const hash = createHash('sha256');
    let sum = 0;
    for (let done = 0; done < bytes; ) {
      const length = Math.min(PIECE_BYTES, bytes - done);
      const read = readSync(fd, this.#piece, 0, length, offset + done);
      if (read === 0) {
        // A truncated part differs from what was packed.
        if (Number.isFinite(bytes)) return;
        break;
      }
      const piece = this.#piece.subarray(0, read);
      hash.update(piece);
      sum = crc32(piece, sum);
      done += read;
    }
    this.result.digests.set(hash.digest(), at * DIGEST_BYTES);
    this.result.crc32[at] = sum;
  }
}
