import type { ShardLayout } from '../layout.js';

/** `chunk-0-12.bin`, and `chunk-0-12.zstd.bin` where it is compressed as a whole. */
const SHARD_NAME = /(^|\/)chunk-\d+-\d+(\.\w+(:\d+)?)?\.bin$/;

export const LITDATA = {
  extension: '.bin',
  isWritten: false,
  isShard: (name: string) => SHARD_NAME.test(name),
  listFile: 'index.json',
  listed: async (text: string): Promise<readonly string[]> => (await import('./chunk-list.js')).listedChunks(text),
  load: async (): Promise<ShardLayout> => (await import('./index.js')).litdata,
} as const;
