import { entryOf } from '@shardtool/format';
import type { CheckedConvertOptions } from '../../options.js';
import type { DatasetShards } from '../../shard/dataset-shards.js';
import type { ViewedShards } from './view.js';

/** Name of the split if none is known. */
const ONLY_SPLIT = 'train';

/** Renames shards as the other tools require, if they do: by their split, otherwise by the option `name`. */
export function renamed<Input extends DatasetShards | ViewedShards>(
  input: Input,
  { format, name }: CheckedConvertOptions,
): Input {
  const { stemOf } = entryOf(format);
  if (stemOf === undefined) return input;
  const samples = 'view' in input ? input.samples : null;
  const isTaken = (shard: number) => samples === null || samples[shard]! > 0;
  const splits = input.shards.map((shard, i) => (isTaken(i) ? name || shard.split || input.split || ONLY_SPLIT : null));
  const counts = new Map<string, number>();
  const numbers = splits.map((split) => {
    if (split === null) return 0;
    const number = counts.get(split) ?? 0;
    counts.set(split, number + 1);
    return number;
  });
  const shards = input.shards.map((shard, i) => {
    const split = splits[i]!;
    return split === null ? shard : { ...shard, stem: stemOf(split, numbers[i]!, counts.get(split)!) };
  });
  return { ...input, shards };
}
