/** The worker thread of a conversion: writes whole shards. */
import { report } from '../crew-member.js';
import type { DatasetShard } from '../dataset-shards.js';
import { type LayoutChoice, layoutOfChoice } from '../layout-choice.js';
import type { ShardTarget } from '../new-shard.js';
import { answer, takeMessages } from '../worker-jobs.js';
import { type ConvertedShard, convertShard } from './convert-shard.js';

/** What {@link ShardTarget} is made of in each worker. */
export interface ConvertTarget extends Omit<ShardTarget, 'layout'> {
  readonly layout: LayoutChoice;
}

export interface ConvertJob {
  readonly shard: number;
  readonly input: DatasetShard;
  readonly target: ConvertTarget;
}

takeMessages(({ shard, input, target }: ConvertJob) => {
  void answer<ConvertedShard>(async () => {
    const layout = await layoutOfChoice(target.layout);
    return { shard, ...(await convertShard(input, { ...target, layout }, report)) };
  });
});
