/** One shard of a conversion, in a thread of its own or in the one that converts. */
import { isAsNoted, noteShard, readShardNote } from '../output/shard-note.js';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { type OutputChoice, outputLayoutOf } from '../shard/layout-choice.js';
import type { ShardTarget } from '../shard/new-shard.js';
import type { Report } from '../shard/shard-job.js';
import { type ConvertedShard, convertShard } from './convert-shard.js';
import type { Recast } from './input/recast.js';
import { type View, type ViewedShard, viewedShard } from './input/view.js';

/** What {@link ShardTarget} is made of in each worker. */
export interface ConvertTarget extends Omit<ShardTarget, 'layout'> {
  readonly layout: OutputChoice;
  /** Of all that the shards are made from. */
  readonly madeFrom: string;
  /** Finished shards lie somewhere else; of those that are noted it was looked there whether they are as noted. */
  readonly isElsewhere: boolean;
}

export interface ConvertJob {
  readonly shard: number;
  readonly input: DatasetShard;
  readonly target: ConvertTarget;
  /** What of the shard is taken, where it is not all. */
  readonly view?: View | undefined;
  readonly recast: Recast | null;
}

/** Keeps a shard that is finished, or converts it and notes that down. */
export async function convertNumbered(
  { shard, input, target, view, recast }: ConvertJob,
  report: Report,
): Promise<NumberedShard> {
  const layout = await outputLayoutOf(target.layout);
  const viewed = view && (() => viewedShard(view, shard));
  return { shard, ...(await keptOrConverted(input, { ...target, layout }, target, viewed, recast, report)) };
}

/** A shard that was converted now, or earlier. */
export interface NumberedShard extends ShardOfConversion {
  readonly shard: number;
  readonly isKept: boolean;
}

type ShardOfConversion = Omit<ConvertedShard, 'shard'>;

/** What an earlier conversion of the same has finished stays. */
async function keptOrConverted(
  input: DatasetShard,
  target: ShardTarget,
  { madeFrom, isElsewhere }: ConvertTarget,
  viewed: (() => Promise<ViewedShard>) | undefined,
  recast: Recast | null,
  report: Report,
): Promise<Omit<NumberedShard, 'shard'>> {
  const noted = readShardNote<ShardOfConversion>(target.output, input.stem, madeFrom);
  if (noted !== null && (isElsewhere || isAsNoted(noted, input.stem, target, false))) {
    report(noted.samples, input.bytes);
    return { ...noted, isKept: true };
  }
  const converted = await convertShard(input, target, report, await viewed?.(), recast);
  await noteShard(target, input.stem, madeFrom, converted);
  return { ...converted, isKept: false };
}
