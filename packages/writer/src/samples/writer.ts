import { readdirSync } from 'node:fs';
import {
  checkLocation,
  checkObject,
  DuplicateKeyError,
  OptionError,
  option,
  sentence,
  withMessages,
} from '@shardtool/base';
import {
  COLUMN_TYPES,
  type ColumnType,
  checkLabelColumns,
  MAX_PIXELS,
  SampleCheck,
  shownValue,
  type WrittenLayout,
} from '@shardtool/format';
import { localPathOf } from '@shardtool/storage';
import { NoImagesError } from '../errors.js';
import { type CheckedOutputOptions, checkPrimary, checkWriterOptions, type OutputOptions } from '../options.js';
import type { PartialField } from '../output/commit.js';
import { namingOutput } from '../output/destination.js';
import { refuseTaken } from '../output/output-folder.js';
import type { Part, WriterPartOption } from '../part.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { checkIndexName, checkOtherIndexes } from '../shard/other-indexes.js';
import { fieldOf } from '../shard/put-sample.js';
import { type SampleToWrite, writeSamples } from '../shard/write-samples.js';
import { FittingSamples } from './fitting-samples.js';
import { HandOver } from './hand-over.js';
import { encodeSample, type NewSample, type SampleRules } from './new-sample.js';
import { openPart, refuseTakenPart } from './part-output.js';
import { type OutputFacts, openWhole, release, type WriterOutput } from './writer-output.js';

/** Options of a writer. Options that {@link OutputOptions} also has mean the same here. */
export interface WriterOptions extends Omit<OutputOptions, 'workers' | 'onProgress'> {
  /** Class names in the order of their numbers. Without them classes are numbers only. */
  readonly classes?: readonly string[] | undefined;
  /** Label columns of the index, by name with their types. */
  readonly columns?: Readonly<Record<string, ColumnType>> | undefined;
  /**
   * For samples without images: the field that every sample must have, such as `npy`, `txt` or `latent.npy`. Default:
   * every sample must have an image.
   */
  readonly primary?: string | undefined;
  /**
   * The part of the dataset that this writer writes: `{ index: 1, of: 4 }` is the second of four. `auto` takes the part
   * from the environment variables of the job scheduler. Each process, on any machine, has a writer for its own
   * part, with the same options. Shards are then called `2-of-4-000000.tar` and so on. The part that
   * finishes last makes the dataset.
   */
  readonly part?: WriterPartOption | undefined;
  /**
   * Identifies the run of a distributed engine whose tasks write the parts, and may write one twice. If another task of
   * the job has finished the part, `add` and `close` reject with {@link PartFinishedError}; a part of another job is an
   * error. The number of parts may be open: `{ index: 6 }`. Such parts are committed with `commitParts(output, { parts })`.
   */
  readonly job?: string | undefined;
}

/** Result of a writer. For a part, it describes that part. */
export interface WriterReport {
  readonly samples: number;
  readonly shards: number;
  /** Size of all shards in bytes. */
  readonly bytes: number;
  /**
   * Number of samples that webdataset skips when it reads these tars, because their keys start with a folder such as
   * `__x__`.
   */
  readonly metaSamples: number;
  /** Fields that not all samples have. Some readers require the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** True if the dataset is complete; false if other parts are missing. */
  readonly isCommitted: boolean;
  /** The missing parts, such as `2/4`. */
  readonly pendingParts: readonly string[];
}

/**
 * Writes samples that a program creates to new shards, in the order in which they are added:
 *
 *     const writer = new Writer('out', { classes: ['cat', 'dog'] });
 *     await writer.add({ key: 'cat/1', jpg: bytes, label: 'cat', json: { age: 3 } });
 *     await writer.close();
 *
 * Only {@link Writer.close} makes a dataset of them; until then the folder is marked as unfinished. To repeat an
 * interrupted `part`, run the same call again. Memory use: samples that were not awaited, the write buffer, the index
 * of the current shard, and about 20 bytes per key.
 */
export class Writer implements AsyncDisposable {
  readonly output: string;
  readonly #options: CheckedOutputOptions;
  readonly #part: Part | null;
  readonly #job: string | undefined;
  readonly #rules: SampleRules;
  readonly #samples = new HandOver<SampleToWrite>();
  /** Starts with the first sample. */
  #work: Promise<Written | null> | null = null;
  #isOver = false;
  readonly #stop = () => this.#samples.stop(this.#options.signal?.reason);

  /**
   * Nothing is written before the first sample. Throws OptionError, and OutputNotEmptyError if something that must not
   * be replaced is in the folder `output`. A bucket is checked when the first sample is added.
   */
  constructor(output: string, options: WriterOptions = {}) {
    checkLocation('A writer', output);
    checkObject('A writer', options);
    const { classes = [], columns = {} } = options;
    this.output = output;
    const { part, job, primary, ...checked } = checkWriterOptions(options);
    this.#options = checked;
    this.#part = part;
    this.#job = job;
    if (job !== undefined && this.#part === null) {
      throw new OptionError(
        { path: output },
        sentence`The option ${option('job')} is for parts; also set ${option('part')}.`,
      );
    }
    checkOtherIndexes(this.#options.format, this.#options.index);
    checkOutput(output, this.#part, this.#options.overwrite);
    if (primary !== undefined) checkPrimary(primary);
    this.#rules = {
      classes: checkNames(classes),
      columns: checkTypes(columns),
      maxPixels: MAX_PIXELS,
      primary: primary ?? null,
    };
    checked.signal?.addEventListener('abort', this.#stop, { once: true });
  }

  /**
   * Writes a sample and resolves when it is written. Await it, so that your program does not create samples faster than
   * they are written. If a sample is invalid, `add` rejects and other samples are unaffected: OptionError for its names
   * and values, {@link BadFileError} for an invalid image, EntryNameError, KeyLengthError or SampleSizeError for
   * samples that the format does not support, {@link DuplicateKeyError}. If nothing can be written, it rejects with
   * OutputNotEmptyError, OutputLockedError, {@link DiskFullError} or FileError; if the option `signal` aborted, with its
   * reason.
   */
  async add(sample: NewSample): Promise<void> {
    return withMessages(async () => {
      this.#checkOpen();
      this.#options.signal?.throwIfAborted();
      const { key, fields, columns } = encodeSample(sample, this.#rules);
      void this.#begin();
      await this.#samples.give({ key, fields: fields.map(({ name, bytes }) => fieldOf(name, bytes)), columns });
    });
  }

  /**
   * Makes a dataset of the samples, or of all parts if this was the last one. Rejects with {@link NoImagesError} if
   * there was no sample, with {@link DuplicateKeyError} if two parts have the same key, and with the errors of {@link
   * Writer.add}.
   */
  async close(): Promise<WriterReport> {
    return withMessages(async () => {
      this.#checkOpen();
      this.#end();
      const { signal } = this.#options;
      if (this.#work === null) signal?.throwIfAborted();
      // After an abort, this waits until the folder is free, and rejects.
      const written = this.#work === null && this.#part === null ? null : await this.#begin();
      if (written === null) {
        throw new NoImagesError(
          { path: this.output },
          `No sample was written to ${this.output}, so there is no dataset.`,
        );
      }
      const { shards, place } = written;
      try {
        signal?.throwIfAborted();
        return await namingOutput(place.destination, () => this.#finish(place, shards));
      } finally {
        signal?.removeEventListener('abort', this.#stop);
        await release(place);
      }
    });
  }

  /**
   * Stops without making a dataset, unless the writer is closed. What was written is kept, and the folder is marked as
   * unfinished.
   */
  async abandon(): Promise<void> {
    if (this.#isOver) return;
    this.#end();
    this.#options.signal?.removeEventListener('abort', this.#stop);
    const written = await this.#work?.catch(() => null);
    if (written) await release(written.place);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.abandon();
  }

  async #finish(place: WriterOutput, shards: readonly ShardRecord[]): Promise<WriterReport> {
    const { pendingParts, partialFields, isCommitted } = await place.finish(shards);
    const total = (count: (shard: ShardRecord) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
    return {
      samples: total(({ samples }) => samples),
      shards: shards.length,
      bytes: total(({ bytes }) => bytes),
      metaSamples: total(({ metaSamples = 0 }) => metaSamples),
      partialFields,
      pendingParts,
      isCommitted,
    };
  }

  #begin(): Promise<Written | null> {
    if (this.#work === null) {
      this.#work = write(this.output, this.#part, this.#job, this.#options, this.#rules, this.#samples);
      // The error is reported by `add` and `close`.
      this.#work.catch(() => {});
    }
    return this.#work;
  }

  #checkOpen(): void {
    if (this.#isOver)
      throw new OptionError({ path: this.output }, `The writer of ${this.output} is closed; create a new one.`);
  }

  /** No more samples are added. */
  #end(): void {
    this.#isOver = true;
    this.#samples.close();
  }
}

/** Throws OutputNotEmptyError if a folder contains something that must not be replaced. */
function checkOutput(output: string, part: Part | null, overwrite: boolean): void {
  const folder = localPathOf(output);
  // A folder that cannot be listed is reported when the first sample is added.
  if (folder === null || !isListable(folder)) return;
  if (part !== null) refuseTakenPart(folder, part, overwrite);
  else if (!overwrite) refuseTaken(folder);
}

function isListable(folder: string): boolean {
  try {
    readdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

/** Throws {@link OptionError} unless `classes` is a list of distinct names. */
function checkNames(classes: readonly string[]): readonly string[] {
  if (!Array.isArray(classes) || !classes.every((name) => typeof name === 'string' && name !== '')) {
    throw new OptionError(
      {},
      sentence`The option ${option('classes')} must be a list of names, such as ["cat", "dog"], not ${shownValue(classes)}.`,
    );
  }
  if (new Set(classes).size < classes.length) {
    throw new OptionError({}, sentence`The option ${option('classes')} contains a name twice; remove one of them.`);
  }
  return classes;
}

/** Throws {@link OptionError} for an unknown type, and for a name that the index itself uses. */
function checkTypes(columns: Readonly<Record<string, ColumnType>>): ReadonlyMap<string, ColumnType> {
  if (typeof columns !== 'object' || columns === null || Array.isArray(columns)) {
    const message = sentence`The option ${option('columns')} must map names to types, such as { score: "double" }, not ${shownValue(columns)}.`;
    throw new OptionError({}, message);
  }
  const types = new Map(Object.entries(columns));
  for (const [name, type] of types) {
    if (COLUMN_TYPES.includes(type)) continue;
    const message = sentence`The option ${option('columns')} gives the column "${name}" the type ${shownValue(type)}; the types are ${COLUMN_TYPES.map((one) => `"${one}"`).join(', ')}.`;
    throw new OptionError({}, message);
  }
  checkLabelColumns(types.keys(), []);
  return types;
}

interface Written {
  readonly place: WriterOutput;
  readonly shards: readonly ShardRecord[];
}

/**
 * Writes the samples that are handed over, until there are no more. The caller must release the output when the promise
 * resolves. Returns null, and writes nothing, if there was no sample and this is not a part.
 */
async function write(
  output: string,
  part: Part | null,
  job: string | undefined,
  options: CheckedOutputOptions,
  { classes, columns }: SampleRules,
  samples: HandOver<SampleToWrite>,
): Promise<Written | null> {
  try {
    const facts = { layout: await layoutOfChoice(options), classes, columns };
    const fitting = new FittingSamples(samples, checkOf(output, facts.layout, options));
    if (!(await fitting.hasAny()) && part === null) return null;
    const place = await (part === null
      ? openWhole(output, options, facts)
      : openPart(output, part, options, facts, job));
    try {
      const shards = await namingOutput(place.destination, () =>
        fill(place, facts, options, fitting, (key) => samples.refuse(cameBefore(key))),
      );
      return { place, shards };
    } catch (error) {
      place.clean();
      await release(place);
      throw error;
    }
  } catch (error) {
    samples.fail(error);
    throw error;
  }
}

async function fill(
  place: WriterOutput,
  { layout, columns: columnTypes }: OutputFacts,
  { maxShardBytes, maxShardSamples, index: otherIndexes, maxSampleBytes, signal }: CheckedOutputOptions,
  samples: FittingSamples,
  refuseKey: (key: string) => void,
): Promise<readonly ShardRecord[]> {
  const { path: output, lock } = place.folder;
  const target = { output, lock, layout, columnTypes, otherIndexes, maxSampleBytes };
  const shards = await writeSamples(samples, target, {
    maxShardBytes,
    maxShardSamples,
    begin: (number) => place.begin(number),
    made: (stem, record) => place.made(stem, record),
    report: () => signal?.throwIfAborted(),
    refuseKey,
  });
  await place.destination.whenSent();
  return shards;
}

/**
 * Returns a function that throws for a sample that the layout does not support, or that an index for other loaders
 * cannot represent.
 */
function checkOf(
  output: string,
  { rules, imageOnly = false }: WrittenLayout,
  { maxSampleBytes, index }: CheckedOutputOptions,
): (sample: SampleToWrite) => void {
  const check = new SampleCheck(output, rules, maxSampleBytes);
  return ({ key, fields }) => {
    const stored = imageOnly ? fields.filter(({ name }) => name !== 'cls') : fields;
    check.check(
      key,
      stored.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    );
    for (const { name } of stored) checkIndexName(index, output, key, `${key}.${name}`);
  };
}

function cameBefore(key: string): DuplicateKeyError {
  return new DuplicateKeyError(
    { key },
    `The key ${JSON.stringify(key)} was already written; each sample needs its own key.`,
  );
}
