import { lastAtMost } from '@shardtool/base';
import type { Source } from '../../source.js';
import type { PartedShard, PartReader, SamplePosition, TableLayout } from '../layout.js';
import { ParquetFile } from './parquet-file.js';
import { ParquetMemory } from './parquet-memory.js';
import { ParquetWriter } from './write.js';

/**
 * Parquet as the Hub's `datasets` writes it, and other files with columns of bytes, read as they are. Opening reads the
 * footer alone. What is seen of a row group are the values of its columns of bytes, row by row: where they lie, in pages that
 * may be compressed, is found when the row group's turn comes. Samples have no keys there: theirs are the file's name and
 * their number. Apache Parquet format, README.md and parquet.thrift.
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

/** The row groups of files, each opened by itself. They share memory for pages. */
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
    // Who reads here knows from the index how long it is.
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

/** All row groups, one behind the other. Owns `source`. */
class WholeFile implements Source {
  readonly location: string;
  readonly size: number;
  readonly #source: Source;
  readonly #file: ParquetFile;
  /** Where each row group begins, as far as that is known: of how many bytes one is shows when its places are found. */
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
      // Another read may have come to know it.
      if (this.#starts.length === last + 1) this.#starts.push(this.#starts[last]! + bytes);
    }
    return this.#starts[group]!;
  }

  /** The row group that has the byte at `offset`; how many there are where none has. */
  async #groupAt(offset: number): Promise<number> {
    const starts = this.#starts;
    while (starts.length <= this.#file.groups.length && starts.at(-1)! <= offset) await this.#startOf(starts.length);
    return lastAtMost(starts, offset);
  }
}
