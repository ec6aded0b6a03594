import type { ShardLayout } from '../layout.js';

/** Names of MNIST and similar files: `train-images-idx3-ubyte`, `t10k-images.idx3-ubyte.gz`. Labels are in a file next to the images. */
const SHARD_NAME = /images[-.]idx3-ubyte(\.gz)?$/;

export const IDX = {
  extension: '-ubyte',
  isWritten: false,
  isShard: (name: string) => SHARD_NAME.test(name),
  splitOf: (name: string) => (/(^|[/-])(t10k|test)[^/]*$/.test(name) ? 'test' : 'train'),
  load: async (): Promise<ShardLayout> => (await import('./index.js')).idx,
} as const;
