import { lastAtMost } from '@shardtool/base';
import type { Source } from '../../source.js';
import type { PartedShard, PartReader, SamplePosition, TableLayout } from '../layout.js';
import { ParquetFile } from './parquet-file.js';
import { ParquetMemory } from './parquet-memory.js';
import { ParquetWriter } from './write.js';

/**
 * Parquet files of Hugging Face datasets, and other files with columns of bytes, read in place. Opening reads only the
 * footer. The view of a row group consists of the values of its columns of bytes, row by row. Their positions, in pages
 * that may be compressed, are found when the row group is read. Samples have no keys there: here the key is the file's
 * name and the row number. Apache Parquet format, README.md and parquet.thrift.
 */
export const parquet: TableLayout = {
  name: 'parquet',
  extension: '.parquet',
  isOpenedByWalk: true,
  expand: async (source) => new WholeFile(source, await ParquetFile.open(source)),
  samples: (source) => (source as WholeFile).samples(),
  partReader,
  shardFolder: 'data',
  columnNames: { image: 'image', cls: 'label' },
  ofTable: (table) => ({
    ...parquet,
    table,
    createWriter: (fd, shard, most) => new ParquetWriter(fd, shard, table, most),
  }),
};

/** Opens the row groups of files one by one. They share memory for pages. */
function partReader(): PartReader {
  const memory = new ParquetMemory();
  return async (open): Promise<PartedShard> => {
    const first = await open();
    const file = await ParquetFile.open(first, memory).finally(() => first.close());
    const during = async function* (walk: (source: Source) => AsyncGenerator<readonly SamplePosition[]>) {
      const source = await open();
      try {
        yield* walk(source);
      } finally {
        await source.close();
      }
    };
    return {
      classes: file.columns.classes,
      parts: file.groups.map(({ firstRow, rows, bytes }, group) => ({
        firstSample: firstRow,
        samples: rows,
        bytes,
        open: async () => new GroupSource(await open(), file, group),
        positions: () => during((source) => file.positions(source, group)),
        labels: () => during((source) => file.labels(source, group)),
      })),
    };
  };
}

/** One row group. Owns `source`. */
class GroupSource implements Source {
  readonly location: string;
  readonly size: number;
  readonly #source: Source;
  readonly #file: ParquetFile;
  readonly #group: number;

  constructor(source: Source, file: ParquetFile, group: number) {
    this.location = source.location;
    // Readers know the length from the index.
    this.size = Number.MAX_SAFE_INTEGER;
    this.#source = source;
    this.#file = file;
    this.#group = group;
  }

  readAt(offset: number, target: Uint8Array): Promise<number> {
    return this.#file.read(this.#source, this.#group, offset, target);
  }

  close(): Promise<void> {
    return this.#source.close();
  }
}

/** All row groups in sequence. Owns `source`. */
class WholeFile implements Source {
  readonly location: string;
  readonly size: number;
  readonly #source: Source;
  readonly #file: ParquetFile;
  /** The offset of each row group, as far as known: the length of a row group's view is known once its positions are found. */
  readonly #starts = [0];

  constructor(source: Source, file: ParquetFile) {
    this.location = source.location;
    this.size = source.size;
    this.#source = source;
    this.#file = file;
  }

  async *samples(): AsyncGenerator<readonly SamplePosition[]> {
    for (const group of this.#file.groups.keys()) {
      yield* this.#file.positions(this.#source, group, await this.#startOf(group));
    }
  }

  async readAt(offset: number, target: Uint8Array): Promise<number> {
    let done = 0;
    for (let group = await this.#groupAt(offset); group < this.#file.groups.length && done < target.length; group++) {
      const within = offset + done - (await this.#startOf(group));
      done += await this.#file.read(this.#source, group, within, target.subarray(done));
    }
    return done;
  }

  close(): Promise<void> {
    return this.#source.close();
  }

  async #startOf(group: number): Promise<number> {
    while (this.#starts.length <= group) {
      const last = this.#starts.length - 1;
      const bytes = await this.#file.bytesOf(this.#source, last);
      // A concurrent read may have added it.
      if (this.#starts.length === last + 1) this.#starts.push(this.#starts[last]! + bytes);
    }
    return this.#starts[group]!;
  }

  /** The row group that contains the byte at `offset`; the number of row groups if none does. */
  async #groupAt(offset: number): Promise<number> {
    const starts = this.#starts;
    while (starts.length <= this.#file.groups.length && starts.at(-1)! <= offset) await this.#startOf(starts.length);
    return lastAtMost(starts, offset);
  }
}
