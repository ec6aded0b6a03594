import type { TableLayout } from '../layout.js';

/** MosaicML's shards, plain or compressed. Compressed ones are recognised so that errors can name them. */
const SHARD_NAME = /\.mds(\.(zstd|gz|bz2|br|snappy)(:\d+)?)?$/;

export const MDS = {
  extension: '.mds',
  isWritten: 'by convert',
  isShard: (name: string) => SHARD_NAME.test(name),
  listFile: 'index.json',
  listed: async (text: string): Promise<readonly string[]> => (await import('./shard-list.js')).listedShards(text),
  load: async (): Promise<TableLayout> => (await import('./index.js')).mds,
} as const;
