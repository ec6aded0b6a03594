import type { ShardLayout } from '../layout.js';

/** Images as files of their own: no name tells such a shard, a place without shards of any other layout is taken for it. */
export const FOLDER = {
  extension: '/',
  isWritten: false,
  isShard: () => false,
  load: async (): Promise<ShardLayout> => (await import('./index.js')).folder,
} as const;
