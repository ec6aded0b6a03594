import { splitOf } from '../../dataset/split-name.js';
import type { ShardLayout } from '../layout.js';

/** `train-00000-of-00002.parquet`. Our indexes have such names, too, and lie beside the shards that they are of: see `findShards`. */
export const PARQUET = {
  extension: '.parquet',
  isWritten: false,
  mayBeBeside: true,
  isDeep: true,
  splitOf,
  load: async (): Promise<ShardLayout> => (await import('./index.js')).parquet,
} as const;
