import { escapeControls } from '@shardtool/base/text';
import type { StoredDataset } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openFilesGiven } from '../../options/dataset-flags.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { stoppable } from '../../terminal/interrupt.js';
import { Interrupted, print, UsageError } from '../../terminal/outcome.js';
import { entriesLine } from '../../terminal/report-lines.js';
import { countOf } from '../../terminal/size.js';

export const unpackCommand = command({
  name: 'unpack',
  summary: 'Write the fields of all samples to files, images under their original names',
  arguments: {
    dataset: DATASET_ARGUMENT,
    folder: {
      type: 'string',
      demandOption: true,
      describe: 'Folder for the files, or - for a tar on standard output',
    },
  },
  options: {
    ...DATASET_FLAGS,
    fields: {
      type: 'string',
      array: true,
      requiresArg: true,
      group: 'Output',
      placeholder: 'FIELD',
      isCommon: true,
      describe: 'Write only these fields',
    },
    quiet: QUIET_FLAG,
  },
  examples: [
    ['$0 unpack shards photos', 'All files'],
    ['$0 unpack shards photos --fields jpg --fields json', 'Images and their JSON'],
    ['$0 unpack shards - | ssh host tar x', 'Send the files to another machine as a tar'],
  ],
  handler: async (given) => {
    const { dataset: location, folder, json, ...seen } = given;
    if (folder === '-' && json)
      throw new UsageError('--json writes to standard output, where the tar would go: unpack to a folder instead.');
    const dataset = await openFilesGiven(location, seen);
    try {
      await unpackDataset(dataset, given);
    } catch (error) {
      // After a signal, reads may hang, and closing would wait for them.
      if (!(error instanceof Interrupted)) await dataset.close();
      throw error;
    }
    await dataset.close();
  },
});

interface Given {
  readonly dataset: string;
  readonly folder: string;
  readonly fields?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

async function unpackDataset(
  dataset: StoredDataset,
  { dataset: location, folder, fields, json, quiet }: Given,
): Promise<void> {
  const isStream = folder === '-';
  const unknown = fields?.find((field) => !dataset.fields.includes(field));
  if (unknown !== undefined) {
    throw new UsageError(`No sample has a field "${unknown}"; the fields are ${dataset.fields.join(', ')}.`);
  }
  const { fileName, renamedImage } = await import('../../unpack/file-name.js');
  const { areAsPacked } = await import('../../unpack/encoded-again.js');
  const { isRemote } = await import('@shardtool/storage');
  // The location that the dataset shows has no token in it.
  const isAsPacked = await areAsPacked(isRemote(location) ? location : dataset.location);
  const stream = isStream ? new (await import('../../unpack/tar-output.js')).TarOutput() : null;
  const target = stream ?? new (await import('../../unpack/unpack-folder.js')).UnpackFolder(folder);
  let files = 0;
  const unpack = async (signal?: AbortSignal) => {
    const samples = dataset.samples({ checksum: true, reuse: true, signal });
    for await (const { shard, key, source, fields: stored } of samples) {
      const renamed = isAsPacked ? renamedImage(Object.keys(stored), source) : null;
      for (const [field, bytes] of Object.entries(stored)) {
        if (fields !== undefined && !fields.includes(field)) continue;
        signal?.throwIfAborted();
        await target.write(fileName(key, field, source, renamed), bytes, { shard, key });
        files++;
      }
    }
  };
  // A file that is being written is finished first. A tar on standard output may wait for its reader forever.
  if (isStream) await unpack();
  else await stoppable(` ${folder} has only some of the files: unpack again, into an empty folder.`, unpack);
  await stream?.end();
  if (json) {
    const { size: samples, skippedEntries } = dataset;
    return print(JSON.stringify({ folder, files, samples, skippedEntries }));
  }
  if (quiet || isStream) return;
  await print(
    [
      `Unpacked ${countOf(files, 'file')} of ${countOf(dataset.size, 'sample')} into ${escapeControls(folder)}.`,
      ...entriesLine(dataset.skippedEntries),
    ].join('\n'),
  );
}
