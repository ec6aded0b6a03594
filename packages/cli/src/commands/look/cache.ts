import { type CommandFamily, command } from '../../command.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatSize } from '../../terminal/size.js';

const FOLDER = {
  type: 'string',
  demandOption: true,
  describe: 'Folder of the cache: the loader option "cache"',
} as const;

/** What a cache contains, or what was removed from it. */
interface Contents {
  readonly pieces: number;
  readonly bytes: number;
}

const cacheLsCommand = command({
  name: 'ls',
  summary: 'Show how many pieces and bytes a cache contains',
  isLocal: true,
  arguments: { folder: FOLDER },
  options: {},
  examples: [['$0 cache ls /nvme/cache', '1,204 pieces, 38 GB']],
  handler: async ({ folder, json }) => {
    const { CacheFolder } = await import('@shardtool/storage');
    const contents = CacheFolder.contents(folder);
    await print(json ? JSON.stringify(contents) : describe(contents));
  },
});

const cacheClearCommand = command({
  name: 'clear',
  summary: 'Remove all pieces of a cache, except those that are being written',
  isLocal: true,
  arguments: { folder: FOLDER },
  options: {},
  examples: [['$0 cache clear /nvme/cache', 'Loaders fetch the pieces again when they need them']],
  handler: async ({ folder, json }) => {
    const { CacheFolder } = await import('@shardtool/storage');
    const removed = await CacheFolder.clear(folder);
    await print(json ? JSON.stringify(removed) : `Removed ${describe(removed)}.`);
  },
});

export const cacheCommand: CommandFamily = {
  name: 'cache',
  summary: 'Show or empty the cache of remote data',
  commands: [cacheLsCommand, cacheClearCommand],
  examples: [
    ['$0 cache ls /nvme/cache', 'Number of pieces and bytes'],
    ['$0 cache clear /nvme/cache', 'Remove all pieces'],
  ],
};

function describe({ pieces, bytes }: Contents): string {
  return `${countOf(pieces, 'piece')}, ${formatSize(bytes)}`;
}
