import type { ColumnType, WrittenLayout } from '@shardtool/format';
import type { CheckedOutputOptions } from '../options.js';
import { commitDataset, type PartialField } from '../output/commit.js';
import { type Destination, namingOutput, openDestination } from '../output/destination.js';
import { OutputFolder } from '../output/output-folder.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { filesOfShard, numberedStem } from '../shard/shard-paths.js';

/** What all writers to one output have in common. */
export interface OutputFacts {
  readonly layout: WrittenLayout;
  readonly classes: readonly string[];
  readonly columns: ReadonlyMap<string, ColumnType>;
}

/** Result of finishing an output. */
export interface Finished {
  /** Parts that are missing before the dataset can be made, such as `2/4`. */
  readonly pendingParts: readonly string[];
  readonly isCommitted: boolean;
  readonly partialFields: readonly PartialField[];
}

/** Output for the shards of a writer, which makes them a dataset; locked until it is released. */
export interface WriterOutput {
  readonly destination: Destination;
  readonly folder: OutputFolder;
  /** Returns the name of shard `number`, which is about to be created. */
  begin(number: number): Promise<string>;
  /** Called when a shard is complete. */
  made(stem: string, record: ShardRecord): Promise<void>;
  /** Called when no more shards follow. */
  finish(shards: readonly ShardRecord[]): Promise<Finished>;
  /** Removes incomplete files. */
  clean(): void;
}

/** Releases the lock. */
export async function release({ destination, folder }: WriterOutput): Promise<void> {
  folder.release();
  await destination.close();
}

/** Opens the output for a whole dataset. Throws OutputNotEmptyError if it contains files that must not be replaced. */
export async function openWhole(
  output: string,
  options: CheckedOutputOptions,
  { layout, classes, columns }: OutputFacts,
): Promise<WriterOutput> {
  const { format, index: otherIndexes, name, overwrite } = options;
  return openOutput(output, options, async (destination) => {
    const folder = await OutputFolder.open(destination.folder, null, options.signal);
    return {
      destination,
      folder,
      prepare: async () => {
        folder.lookForSame(null, overwrite);
        await folder.clear();
        await destination.removeGone();
      },
      begin: async (number) => {
        const stem = numberedStem(name, number);
        await folder.announce(layout, [stem], otherIndexes);
        await destination.sendNotes();
        return stem;
      },
      made: async (stem) => {
        const files = filesOfShard(layout, stem, otherIndexes);
        await destination.sendShard(files, null, files.slice(0, -1));
      },
      finish: async (shards) => {
        const facts = { format, classes, columns: listed(columns), otherIndexes, lock: folder.lock };
        const partialFields = await commitDataset(folder.path, shards, facts);
        await destination.commit();
        return { pendingParts: [], partialFields, isCommitted: true };
      },
      clean: () => folder.removeTemporaryFiles(layout),
    };
  });
}

/** Label columns as dataset.json lists them. */
export function listed(columns: ReadonlyMap<string, ColumnType>): { name: string; type: ColumnType }[] {
  return [...columns].map(([name, type]) => ({ name, type }));
}

/** Opens the output, passes on what it contains, and prepares it. After an error nothing is left open or locked. */
export async function openOutput(
  output: string,
  options: CheckedOutputOptions & { readonly part?: string | undefined },
  open: (destination: Destination) => Promise<WriterOutput & { prepare(): Promise<void> }>,
): Promise<WriterOutput> {
  const destination = await openDestination(output, { ...options, part: options.part });
  try {
    return await namingOutput(destination, async () => {
      const opened = await open(destination);
      try {
        await destination.fetch(false);
        await opened.prepare();
        return opened;
      } catch (error) {
        opened.folder.release();
        throw error;
      }
    });
  } catch (error) {
    await destination.close();
    throw error;
  }
}
