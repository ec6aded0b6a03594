import type { LayoutName, ShardLayout } from './layout.js';

/** Every kind of shard, loaded when it is first asked for. */
const LAYOUTS: Readonly<Record<LayoutName, () => Promise<ShardLayout>>> = {
  tar: async () => (await import('./tar/index.js')).tar,
  lmdb: async () => (await import('./lmdb/index.js')).lmdb,
  msgpack: async () => (await import('./msgpack/index.js')).msgpack,
};

export function layoutOf(name: LayoutName): Promise<ShardLayout> {
  return LAYOUTS[name]();
}
