import type { ShardLayout } from '../layout.js';

/** The form of MNIST and its kin: `train-images-idx3-ubyte`, `t10k-images.idx3-ubyte.gz`; labels lie beside the images. */
const SHARD_NAME = /images[-.]idx3-ubyte(\.gz)?$/;

export const IDX = {
  extension: '-ubyte',
  isWritten: false,
  isShard: (name: string) => SHARD_NAME.test(name),
  splitOf: (name: string) => (/(^|[/-])(t10k|test)[^/]*$/.test(name) ? 'test' : 'train'),
  load: async (): Promise<ShardLayout> => (await import('./index.js')).idx,
} as const;
