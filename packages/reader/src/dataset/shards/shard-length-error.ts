import { ShardtoolError } from '@shardtool/base';

/** A shard is shorter than its index says. It was truncated or replaced after it was packed. */
export class ShardLengthError extends ShardtoolError {
  static override readonly kind: string = 'ShardLengthError';
}

/** The error of a shard that ends at `end`, before the byte `needed`. `path` is for messages. */
export function shardTooShort(
  { name, path }: { readonly name: string; readonly path: string },
  end: number,
  needed: number,
): ShardLengthError {
  return new ShardLengthError(
    { shard: name, path, offset: end },
    `${path} ends at byte ${end}, but its index refers to bytes up to ${needed}: it was truncated or replaced since ` +
      'it was packed; restore it, or repair the dataset with "shardtool verify --fix".',
  );
}
