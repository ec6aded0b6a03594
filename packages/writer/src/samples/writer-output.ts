import type { ColumnType, WrittenLayout } from '@shardtool/format';
import type { CheckedOutputOptions } from '../options.js';
import { commitDataset, type PartialField } from '../output/commit.js';
import { type Destination, namingPlace, openDestination } from '../output/destination.js';
import { OutputFolder } from '../output/output-folder.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { filesOfShard, numberedStem } from '../shard/shard-paths.js';

/** What all that writes to one place has in common. */
export interface OutputFacts {
  readonly layout: WrittenLayout;
  readonly classes: readonly string[];
  readonly columns: ReadonlyMap<string, ColumnType>;
}

/** What became of the shards. */
export interface Finished {
  /** Parts that are to come until there is a dataset, as `2/4`. */
  readonly pendingParts: readonly string[];
  readonly partialFields: readonly PartialField[];
}

/** Where the shards of a writer go, and how they become a dataset; locked until it is released. */
export interface WriterOutput {
  readonly destination: Destination;
  readonly folder: OutputFolder;
  /** What shard `number` is called; it is about to be made. */
  begin(number: number): Promise<string>;
  /** It is whole. */
  made(stem: string, record: ShardRecord): Promise<void>;
  /** No more shards come. */
  finish(shards: readonly ShardRecord[]): Promise<Finished>;
  /** Removes what is not whole. */
  clean(): void;
}

/** Gives the lock back. */
export async function release({ destination, folder }: WriterOutput): Promise<void> {
  folder.release();
  await destination.close();
}

/** A place for the whole dataset. Throws OutputNotEmptyError where something lies there that is not to be replaced. */
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
        return { pendingParts: [], partialFields };
      },
      clean: () => folder.removeTemporaryFiles(layout),
    };
  });
}

/** Label columns as dataset.json lists them. */
export function listed(columns: ReadonlyMap<string, ColumnType>): { name: string; type: ColumnType }[] {
  return [...columns].map(([name, type]) => ({ name, type }));
}

/** Opens the place, shows what lies there, and prepares it; nothing stays open or locked where that fails. */
export async function openOutput(
  output: string,
  options: CheckedOutputOptions & { readonly part?: string | undefined },
  open: (destination: Destination) => Promise<WriterOutput & { prepare(): Promise<void> }>,
): Promise<WriterOutput> {
  const destination = await openDestination(output, { ...options, part: options.part });
  try {
    return await namingPlace(destination, async () => {
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
