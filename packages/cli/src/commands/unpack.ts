import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openDataset, type Sample, ShardtoolError } from '@shardtool/reader';
import type { CommandModule } from 'yargs';
import { formatCount } from '../size.js';

interface UnpackArguments {
  readonly dataset: string;
  readonly folder: string;
  readonly fields: readonly string[] | undefined;
  readonly quiet: boolean;
}

export const unpackCommand: CommandModule<object, UnpackArguments> = {
  command: 'unpack <dataset> <folder>',
  describe: 'Write every field of every sample to a file of its own: KEY.FIELD',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .positional('folder', { type: 'string', demandOption: true, describe: 'Where the files go; nothing is written outside of it' })
      .option('fields', { type: 'string', array: true, describe: 'Only these fields' })
      .option('quiet', { type: 'boolean', default: false, describe: 'Print nothing when all is well' })
      .example('$0 unpack shards photos', 'All files')
      .example('$0 unpack shards photos --fields jpg', 'The images alone'),
  handler: async ({ dataset: location, folder, fields, quiet }) => {
    const dataset = await openDataset(location);
    const root = path.resolve(folder);
    const made = new Set<string>();
    let files = 0;
    for await (const sample of dataset.samples({ checksum: true })) {
      for (const [field, bytes] of Object.entries(sample.fields)) {
        if (fields !== undefined && !fields.includes(field)) continue;
        const file = fileOf(root, sample, field);
        const parent = path.dirname(file);
        if (!made.has(parent)) {
          await mkdir(parent, { recursive: true });
          made.add(parent);
        }
        // "wx": a file that is there already, or a link that leads elsewhere, is never written through.
        await writeFile(file, bytes, { flag: 'wx' }).catch((cause: NodeJS.ErrnoException) => {
          throw new ShardtoolError(
            { shard: sample.shard, key: sample.key, path: file },
            `${file} cannot be written (${cause.message}); unpack into an empty folder.`,
            { cause },
          );
        });
        files++;
      }
    }
    await dataset.close();
    if (!quiet) console.log(`${formatCount(files)} files of ${formatCount(dataset.size)} samples in ${folder}`);
  },
};

/** The file of a field. Throws where the key would lead outside of the folder. */
function fileOf(root: string, { shard, key }: Sample, field: string): string {
  const file = path.resolve(root, `${key}.${field}`);
  if (file.startsWith(root + path.sep) && !key.includes('\0')) return file;
  throw new ShardtoolError(
    { shard, key },
    `${shard}: the key ${JSON.stringify(key)} leads outside of the output folder, so nothing more was unpacked.`,
  );
}
