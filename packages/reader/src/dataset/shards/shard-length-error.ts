import { ShardtoolError } from '@shardtool/base';

/** A shard is shorter than its index says. It was truncated or replaced after it was packed. */
export class ShardLengthError extends ShardtoolError {
  static override readonly kind: string = 'ShardLengthError';
}

/** The error of a shard that ends at `end`, before the byte `needed`. */
export function shardTooShort(path: string, end: number, needed: number, shard: string = path): ShardLengthError {
  return new ShardLengthError(
    { shard, path, offset: end },
    `${shard} ends at byte ${end}, but its index refers to bytes up to ${needed}: it was truncated or ` +
      'replaced since it was packed. Run "shardtool verify" on the dataset.',
  );
}
