import { availableParallelism } from 'node:os';
import path from 'node:path';
import { indexPathOf, MAX_PIXELS, readManifest } from '@shardtool/format';
import { WorkerPool } from '../worker-pool.js';
import type { Fault, ShardToVerify, ShardVerdict } from './verify-shard.js';
import type { VerifyWorkerData } from './verify-worker.js';

export interface VerifyOptions {
  /** Also decodes every image whole. Default false. */
  readonly decode?: boolean;
  /** Worker threads. Default: the number of cores. */
  readonly workers?: number;
  /** Called for each fault as it is found; shards are checked side by side, so the order may differ between runs. */
  readonly onFault?: (fault: Fault) => void;
  /** Called after each shard. */
  readonly onProgress?: (done: { readonly shards: number; readonly bytes: number }) => void;
}

export interface VerifyReport {
  readonly shards: number;
  readonly samples: number;
  readonly bytes: number;
  /** Faults, and different samples that have one. */
  readonly faults: number;
  readonly damagedSamples: number;
  /** Images that were decoded although something in them is odd. */
  readonly warnings: number;
}

/** Checks a packed dataset against its manifest and indexes. Throws where there is no manifest that can be read. */
export async function verify(location: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const manifest = await readManifest(location);
  const shards = manifest.shards.map((record): ShardToVerify => {
    // The file of an LMDB shard lies in a folder that has the shard's name.
    const name = record.file.split('/')[0]!;
    return {
      format: manifest.format,
      name,
      path: path.join(location, record.file),
      indexPath: indexPathOf(path.join(location, name)),
      bytes: record.bytes,
      samples: record.samples,
      crc32: record.crc32,
    };
  });
  const data: VerifyWorkerData = { decode: options.decode ?? false, maxPixels: MAX_PIXELS };
  const workers = Math.max(1, Math.min(options.workers ?? availableParallelism(), shards.length));
  const pool = new WorkerPool<ShardToVerify, ShardVerdict>(new URL('./verify-worker.js', import.meta.url), workers, () => data);
  const report = { shards: 0, samples: 0, bytes: 0, faults: 0, damagedSamples: 0, warnings: 0 };
  const add = (verdict: ShardVerdict): void => {
    report.shards++;
    report.samples += verdict.samples;
    report.bytes += verdict.bytes;
    report.faults += verdict.faults.length;
    report.damagedSamples += new Set(verdict.faults.flatMap(({ key }) => key ?? [])).size;
    report.warnings += verdict.warnings;
    for (const fault of verdict.faults) options.onFault?.(fault);
    options.onProgress?.({ shards: report.shards, bytes: report.bytes });
  };
  try {
    await pool.run(shards, add, () => {});
  } finally {
    await pool.close();
  }
  return report;
}
