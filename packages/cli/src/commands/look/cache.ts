import { command } from '../../command.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatSize } from '../../terminal/size.js';

export const cacheCommand = command({
  name: 'cache',
  positionals: '<action> <folder>',
  describe: 'Say what a cache of fetched pieces holds, or empty it',
  builder: (yargs) =>
    yargs
      .positional('action', { choices: ['ls', 'clear'] as const, demandOption: true, describe: 'What to do' })
      .positional('folder', { type: 'string', demandOption: true, describe: 'Folder of the cache' })
      .option('json', { type: 'boolean', default: false, describe: 'One JSON object' })
      .example('$0 cache ls /nvme/cache', 'Pieces and bytes')
      .example('$0 cache clear /nvme/cache', 'Removes all pieces that nobody is writing'),
  handler: async ({ action, folder, json }) => {
    const { CacheFolder } = await import('@shardtool/storage');
    const contents = action === 'ls' ? CacheFolder.contents(folder) : await CacheFolder.clear(folder);
    const said = `${countOf(contents.pieces, 'piece')}, ${formatSize(contents.bytes)}`;
    await print(json ? JSON.stringify(contents) : action === 'ls' ? said : `removed ${said}`);
  },
});
