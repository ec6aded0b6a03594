/** Repairs one shard, in a worker thread or in the thread that repairs. */
import { MAX_PIXELS } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import { checkShard } from '../check/check-shard.js';
import type { DatasetShard } from '../shard/dataset-shards.js';
import type { VerifyAnswer, VerifyJob } from '../verify/verify.js';
import { type RepairedShard, type RepairSetting, repairShard } from './repair-shard.js';

export interface RepairJob {
  readonly number: number;
  readonly shard: DatasetShard;
}

/** A shard is verified first, and repaired if faults are found. */
export type ShardWork = ({ readonly type: 'verify' } & VerifyJob) | ({ readonly type: 'repair' } & RepairJob);

export interface RepairAnswer {
  readonly number: number;
  readonly repaired: RepairedShard;
}

/** Verifies and repairs shards. The creator must close it. */
export class RepairJobs {
  readonly #setting: RepairSetting;
  #checker: Promise<Checker> | undefined;

  constructor(setting: RepairSetting) {
    this.#setting = setting;
  }

  async work(job: ShardWork): Promise<VerifyAnswer | RepairAnswer> {
    const { number } = job;
    if (job.type === 'repair')
      return { number, repaired: await repairShard(job.shard, this.#setting, () => this.#loadChecker()) };
    return { number, verdict: await checkShard(job.shard, this.#setting.decode ? await this.#loadChecker() : null) };
  }

  async close(): Promise<void> {
    (await this.#checker)?.close();
  }

  /** Loads the codecs, if an image must be decoded to judge it. */
  #loadChecker(): Promise<Checker> {
    this.#checker ??= import('@shardtool/reader').then(({ createChecker }) => createChecker({ maxPixels: MAX_PIXELS }));
    return this.#checker;
  }
}
