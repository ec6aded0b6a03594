import {
  type ColumnType,
  DuplicateKeyError,
  MAX_PIXELS,
  OptionError,
  type WrittenLayout,
  withSentences,
} from '@shardtool/format';
import { NoImagesError } from '../errors.js';
import { type CheckedOutputOptions, checkWriterOptions, type OutputOptions } from '../options.js';
import { commitDataset, type PartialField } from '../output/commit.js';
import { type Destination, namingPlace, openDestination } from '../output/destination.js';
import { OutputFolder } from '../output/output-folder.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import { fieldOf } from '../shard/put-sample.js';
import { filesOfShard, numberedStem } from '../shard/shard-paths.js';
import { type SampleToWrite, writeSamples } from '../shard/write-samples.js';
import { HandOver } from './hand-over.js';
import { encodeSample, type NewSample, type SampleRules } from './new-sample.js';

/** How samples are written; those that {@link OutputOptions} has too are the same. */
export interface WriterOptions extends Omit<OutputOptions, 'workers' | 'onProgress'> {
  /** Names of the classes in the order of their numbers. Without them classes are numbers only. */
  readonly classes?: readonly string[] | undefined;
  /** Label columns of the index, by name with their types. */
  readonly columns?: Readonly<Record<string, ColumnType>> | undefined;
}

/** What a writer wrote. */
export interface WriterReport {
  readonly samples: number;
  readonly shards: number;
  /** Size of all shards in bytes. */
  readonly bytes: number;
  /** Fields that not all samples have: some readers want the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
}

/**
 * Writes samples that a program makes to new shards, in the order in which they come:
 *
 *     const writer = new Writer('out', { classes: ['cat', 'dog'] });
 *     await writer.add({ key: 'cat/1', jpg: bytes, cls: 'cat', json: { age: 3 } });
 *     await writer.close();
 *
 * Only {@link Writer.close} makes a dataset of them; until then the folder says that it is none. Memory holds the samples that
 * were not awaited, the write buffer, the index of the shard in hand, and some 20 bytes for each key.
 */
export class Writer implements AsyncDisposable {
  readonly output: string;
  readonly #options: CheckedOutputOptions;
  readonly #rules: SampleRules;
  readonly #samples = new HandOver<SampleToWrite>();
  /** Begins with the first sample. */
  #work: Promise<Written> | null = null;
  #isOver = false;

  /** Throws OptionError. Nothing is written before the first sample. */
  constructor(output: string, { classes = [], columns = {}, ...options }: WriterOptions = {}) {
    this.output = output;
    this.#options = checkWriterOptions(options);
    checkOtherIndexes(this.#options.format, this.#options.index);
    if (new Set(classes).size < classes.length) {
      throw new OptionError({}, 'The option "classes" has a name twice; each class has one number.');
    }
    this.#rules = { classes, columns: new Map(Object.entries(columns)), maxPixels: MAX_PIXELS };
  }

  /**
   * Writes a sample; resolves when that is done: await it, so that a program makes no more samples than are written. Rejects where
   * the sample cannot be taken, which then is not written and hinders no other: with OptionError for its names and values,
   * {@link BadFileError} for an image that is none, {@link DuplicateKeyError}; and with OutputNotEmptyError, OutputLockedError,
   * {@link DiskFullError} or FileError where none can be written.
   */
  async add(sample: NewSample): Promise<void> {
    return withSentences(async () => {
      this.#checkOpen();
      const { key, fields, columns } = encodeSample(sample, this.#rules);
      this.#begin();
      await this.#samples.give({ key, fields: fields.map(({ name, bytes }) => fieldOf(name, bytes)), columns });
    });
  }

  /** Makes a dataset of the samples. Rejects with {@link NoImagesError} where there was none, and with what {@link Writer.add} does. */
  async close(): Promise<WriterReport> {
    return withSentences(async () => {
      this.#checkOpen();
      this.#isOver = true;
      this.#samples.close();
      if (this.#work === null) {
        throw new NoImagesError(
          { path: this.output },
          `No sample was written to ${this.output}, so there is no dataset.`,
        );
      }
      const { shards, place } = await this.#work;
      try {
        return await namingPlace(place.destination, () => this.#commit(place, shards));
      } finally {
        await release(place);
      }
    });
  }

  /** Gives up, unless it is closed: what was written stays, and the folder says that it is no dataset. */
  async abandon(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#samples.close();
    const written = await this.#work?.catch(() => null);
    if (written) await release(written.place);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.abandon();
  }

  async #commit({ folder, destination }: Place, shards: readonly ShardRecord[]): Promise<WriterReport> {
    const { format, index: otherIndexes } = this.#options;
    const columns = [...this.#rules.columns].map(([name, type]) => ({ name, type }));
    const facts = { format, classes: this.#rules.classes, columns, otherIndexes };
    const partialFields = await commitDataset(folder.path, shards, facts);
    await destination.commit();
    const total = (count: (shard: ShardRecord) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
    return {
      samples: total(({ samples }) => samples),
      shards: shards.length,
      bytes: total(({ bytes }) => bytes),
      partialFields,
    };
  }

  #begin(): void {
    if (this.#work !== null) return;
    this.#work = write(this.output, this.#options, this.#rules, this.#samples);
    // Whoever gives a sample, or closes, hears of it.
    this.#work.catch(() => {});
  }

  #checkOpen(): void {
    if (this.#isOver)
      throw new OptionError({ path: this.output }, `The writer of ${this.output} is closed; make a new one.`);
  }
}

/** Where the shards go: the folder is locked. */
interface Place {
  readonly destination: Destination;
  readonly folder: OutputFolder;
}

interface Written {
  readonly place: Place;
  readonly shards: readonly ShardRecord[];
}

async function release({ destination, folder }: Place): Promise<void> {
  folder.release();
  await destination.close();
}

/** Writes what is handed over, until no more comes. The place is to be released where it resolves. */
async function write(
  output: string,
  options: CheckedOutputOptions,
  { columns }: SampleRules,
  samples: HandOver<SampleToWrite>,
): Promise<Written> {
  try {
    const layout = await layoutOfChoice(options);
    const place = await openPlace(output, options);
    try {
      const shards = await namingPlace(place.destination, () => fill(place, layout, options, columns, samples));
      return { place, shards };
    } catch (error) {
      place.folder.removeTemporaryFiles(layout);
      await release(place);
      throw error;
    }
  } catch (error) {
    samples.fail(error);
    throw error;
  }
}

/** Throws where something lies there that is not to be replaced. */
async function openPlace(output: string, options: CheckedOutputOptions): Promise<Place> {
  const destination = await openDestination(output, { ...options, part: undefined });
  try {
    return await namingPlace(destination, async () => {
      const folder = await OutputFolder.open(destination.folder, null, options.signal);
      try {
        await destination.fetch(false);
        folder.lookForSame(null, options.overwrite);
        await folder.clear();
        await destination.removeGone();
        return { destination, folder };
      } catch (error) {
        folder.release();
        throw error;
      }
    });
  } catch (error) {
    await destination.close();
    throw error;
  }
}

async function fill(
  { folder, destination }: Place,
  layout: WrittenLayout,
  { maxShardBytes, maxShardSamples, name, index: otherIndexes, maxSampleBytes, signal }: CheckedOutputOptions,
  columnTypes: ReadonlyMap<string, ColumnType>,
  samples: HandOver<SampleToWrite>,
): Promise<readonly ShardRecord[]> {
  const target = { output: folder.path, layout, columnTypes, otherIndexes, maxSampleBytes };
  const shards = await writeSamples(samples, target, {
    maxShardBytes,
    maxShardSamples,
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
    report: () => signal?.throwIfAborted(),
    refuseKey: (key) => samples.refuse(cameBefore(key)),
  });
  await destination.whenSent();
  return shards;
}

function cameBefore(key: string): DuplicateKeyError {
  return new DuplicateKeyError(
    { key },
    `The key ${JSON.stringify(key)} was written before; each sample has one of its own.`,
  );
}
