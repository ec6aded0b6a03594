/** The worker thread of a conversion: writes whole shards. */
import { report } from '../crew/crew-member.js';
import { answer, takeMessages } from '../crew/worker-jobs.js';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { type LayoutChoice, layoutOfChoice } from '../shard/layout-choice.js';
import type { ShardTarget } from '../shard/new-shard.js';
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
