import type { ShardLayout } from '../layout.js';

/** The binary form of CIFAR-10 (`data_batch_1.bin`, `test_batch.bin`) and of CIFAR-100 (`train.bin`, `test.bin`). */
const SHARD_NAME = /^(data_batch_\d+|test_batch|train|test)\.bin$/;

export const CIFAR = {
  extension: '.bin',
  isWritten: false,
  isShard: (name: string) => SHARD_NAME.test(name.slice(name.lastIndexOf('/') + 1)),
  splitOf: (name: string) => (/(^|\/)test[^/]*$/.test(name) ? 'test' : 'train'),
  load: async (): Promise<ShardLayout> => (await import('./index.js')).cifar,
} as const;
