import { OptionError } from '@shardtool/base';
import type { StorageOptions } from '@shardtool/storage';

/** A difference from what was packed. Without a key it concerns the shard or its index as a whole. */
export interface Fault {
  readonly shard: string;
  readonly key?: string;
  /** One sentence, or several separated by semicolons. */
  readonly reason: string;
}

export interface VerifyOptions {
  /** `checksums` compares all bytes with their checksums; `decode` also decodes every image completely. Default: `checksums`. */
  readonly check?: 'checksums' | 'decode' | undefined;
  /**
   * Verifies only shards whose last check of this level, without faults, is at least this number of milliseconds ago.
   * The file `verified.jsonl` of the dataset lists the checks. Default: all shards, or with `sample` 0.
   */
  readonly since?: number | undefined;
  /**
   * Verifies at most this share of the dataset's bytes, above 0 and at most 1, and at least one shard: those whose check is
   * the longest ago. Results are kept in `verified.jsonl`, so repeated calls verify the whole dataset. Default: 1.
   */
  readonly sample?: number | undefined;
  /** Number of worker threads. Default: the number of cores. If there is little work, no threads are started. */
  readonly workers?: number | undefined;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Called for each fault, in the order of the shards. */
  readonly onFault?: ((fault: Fault) => void) | undefined;
  /** Called after each shard. */
  readonly onProgress?: ((done: VerifyProgress) => void) | undefined;
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Progress, in the order of the shards. */
export interface VerifyProgress {
  readonly shards: number;
  readonly totalShards: number;
}

export interface VerifyReport {
  readonly shards: number;
  readonly samples: number;
  readonly bytes: number;
  /** Number of damaged samples, plus faults of shards and indexes as a whole. */
  readonly faults: number;
  readonly damagedSamples: number;
  /** Number of images that were decoded with warnings. */
  readonly warnings: number;
  /** Number of files in shards of other tools that belong to no sample, except links. */
  readonly skippedEntries: number;
  /** True if every sample had a checksum. Shards of other tools without indexes have none, but zips store their own. */
  readonly checksums: boolean;
  /** The recorded checks after the call; null without `since` and `sample`. */
  readonly record: VerifyRecordReport | null;
}

/** A summary of the recorded checks of a dataset. */
export interface VerifyRecordReport {
  /** Number of shards that remain to be verified, according to `since`. With `sample` only: shards that were never found whole. */
  readonly dueShards: number;
  /** The earliest of the times at which shards were last found whole, in ISO 8601; null if a shard was never found whole. */
  readonly oldest: string | null;
  /** The file with the record; null if it could not be saved anywhere. */
  readonly file: string | null;
  /** Why the record could not be saved next to the shards; null if it could. */
  readonly fault: string | null;
}

type Verify = (location: string, options: VerifyOptions) => Promise<VerifyReport>;

let verify: Verify | null = null;

/** Sets the implementation of `Dataset.verify`. It is in a package that depends on this one, and calls this function when it is loaded. */
export function provideVerify(given: Verify): void {
  verify = given;
}

/** Verifies the dataset at this location. Throws OptionError if the package that does this is not loaded. */
export async function verifyAt(location: string, options: VerifyOptions): Promise<VerifyReport> {
  if (verify !== null) return verify(location, options);
  throw new OptionError({}, 'To verify datasets, import from "shardtool", and not from "@shardtool/reader" alone.');
}
