import type { ShardLayout } from '../layout.js';

/** Images as single files. No name identifies such a shard: a location without shards of any other layout is read as one. */
export const FOLDER = {
  extension: '/',
  isWritten: false,
  isShard: () => false,
  load: async (): Promise<ShardLayout> => (await import('./index.js')).folder,
} as const;
