/** Converts one shard, in a worker thread or in the thread that converts. */
import { isAsNoted, noteShard, readShardNote } from '../output/shard-note.js';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { type OutputChoice, outputLayoutOf } from '../shard/layout-choice.js';
import type { ShardTarget } from '../shard/new-shard.js';
import type { Report } from '../shard/shard-job.js';
import { type ConvertedShard, convertShard } from './convert-shard.js';
import type { Recast } from './input/recast.js';
import { type View, type ViewedShard, viewedShard } from './input/view.js';

/** From this each worker makes a {@link ShardTarget}. */
export interface ConvertTarget extends Omit<ShardTarget, 'layout'> {
  readonly layout: OutputChoice;
  /** Digest of everything that the shards are made from. */
  readonly madeFrom: string;
  /** True if finished shards are stored elsewhere. Those with notes were already compared with their notes there. */
  readonly isElsewhere: boolean;
}

export interface ConvertJob {
  readonly shard: number;
  readonly input: DatasetShard;
  readonly target: ConvertTarget;
  /** The part of the shard to convert, if not all of it. */
  readonly view?: View | undefined;
  readonly recast: Recast | null;
}

/**
 * Keeps a finished shard, or converts it and notes that it is finished. `whenFilled` is called when only the disk is
 * waited for, so that another shard can start.
 */
export async function convertNumbered(
  { shard, input, target, view, recast }: ConvertJob,
  report: Report,
  whenFilled: () => unknown,
): Promise<NumberedShard> {
  const layout = await outputLayoutOf(target.layout);
  const viewed = view && (() => viewedShard(view, shard));
  const made = await keptOrConverted(input, { ...target, layout }, target, viewed, recast, report, whenFilled);
  return { shard, ...made };
}

/** A shard that was converted now or earlier. */
export interface NumberedShard extends ShardOfConversion {
  readonly shard: number;
  readonly isKept: boolean;
}

type ShardOfConversion = Omit<ConvertedShard, 'shard'>;

/** Shards that an earlier run of the same conversion has finished are kept. */
async function keptOrConverted(
  input: DatasetShard,
  target: ShardTarget,
  { madeFrom, isElsewhere }: ConvertTarget,
  viewed: (() => Promise<ViewedShard>) | undefined,
  recast: Recast | null,
  report: Report,
  whenFilled: () => unknown,
): Promise<Omit<NumberedShard, 'shard'>> {
  const noted = readShardNote<ShardOfConversion>(target.output, input.stem, madeFrom);
  if (noted !== null && (isElsewhere || isAsNoted(noted, input.stem, target, false))) {
    report(noted.samples, input.bytes);
    return { ...noted, isKept: true };
  }
  const converted = await convertShard(input, target, report, await viewed?.(), recast, whenFilled);
  await noteShard(target, input.stem, madeFrom, converted);
  return { ...converted, isKept: false };
}
