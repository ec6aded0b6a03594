import { closeSync, readSync, writeSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { crc32, indexArray, openWithoutName } from '@shardtool/base';
import type { ColumnValue } from '@shardtool/format';
import { asDiskFull } from '../../disk-full.js';
import { HELD_BYTES } from '../../shard/large-sample.js';
import { fieldOf, type NewField, type SampleFacts } from '../../shard/put-sample.js';
import type { StoredSample } from '../../shard/put-stored.js';
import { PIECE_BYTES } from '../../source/ahead/file-access.js';

/** The most files at once, each with a file of its entries. */
const MOST_FILES = 128;
/** Size that a file should have, if there are not too many: it is then in the page cache while it is read. */
const FILE_BYTES = 256 << 20;
const BUFFER_BYTES = 256 << 10;
/** Position of a sample, offset and length of its record, and length of the record's description: float64 each. */
const ENTRY_VALUES = 4;

/** A sample with the values of its columns. */
export interface SpooledSample extends StoredSample {
  readonly columns: ReadonlyMap<string, ColumnValue>;
}

interface Description {
  readonly key: string;
  readonly facts: SampleFacts;
  readonly bytes: number;
  readonly columns: readonly (readonly [string, ColumnValue])[];
  /** Name, length and crc32 of each field. */
  readonly fields: readonly (readonly [string, number, number])[];
}

/**
 * Samples on their way to another order, on disk. Each is added once with its new position. All positions are divided into
 * up to 128 ranges with a file each, so that samples are written sequentially and read from one file at a time. Memory: 512
 * KiB per file, 32 bytes for each sample of one file, and one sample (64 MiB of a large one). The files have no name, so
 * nothing is left of a process that is killed. The caller must close the spool.
 */
export class SampleSpool {
  readonly #samples: number;
  readonly #folder: string;
  readonly #ranges: { readonly records: SpoolFile; readonly entries: SpoolFile }[] = [];

  /** `bytes`: size of all samples together. */
  constructor(folder: string, samples: number, bytes: number) {
    this.#folder = folder;
    this.#samples = samples;
    const count = Math.min(MOST_FILES, Math.max(1, Math.ceil(bytes / FILE_BYTES)));
    try {
      for (let i = 0; i < count; i++) {
        this.#ranges.push({ records: new SpoolFile(folder), entries: new SpoolFile(folder) });
      }
    } catch (error) {
      this.close();
      throw asDiskFull(error, folder);
    }
  }

  /** Throws DiskFullError, and errors of the sample's fields unchanged. */
  async add(position: number, sample: SpooledSample): Promise<void> {
    const { records, entries } = this.#ranges[this.#rangeOf(position)]!;
    const start = records.bytes;
    const fields: [string, number, number][] = [];
    for (const field of sample.fields) {
      let sum = 0;
      if (field.pieces === undefined) {
        const payload = new Uint8Array(field.bytes);
        sum = field.put(payload);
        this.#write(records, payload);
      } else {
        for await (const piece of field.pieces()) {
          sum = crc32(piece, sum);
          this.#write(records, piece);
        }
      }
      fields.push([field.name, field.bytes, sum]);
    }
    const { key, facts, bytes, columns } = sample;
    const description: Description = { key, facts, bytes, columns: [...columns], fields };
    const said = serialize(description);
    this.#write(records, said);
    const entry = Float64Array.of(position, start, records.bytes - start, said.length);
    this.#write(entries, new Uint8Array(entry.buffer));
  }

  /** Yields all samples by their positions. Each is valid until the next. */
  async *read(): AsyncGenerator<SpooledSample> {
    for (const { records, entries } of this.#ranges) {
      records.flush();
      entries.flush();
      const found = new Float64Array(entries.bytes / 8);
      entries.read(new Uint8Array(found.buffer), 0);
      const order = indexArray(found.length / ENTRY_VALUES);
      order.sort((a, b) => found[a * ENTRY_VALUES]! - found[b * ENTRY_VALUES]!);
      for (const i of order) {
        const [, start, length, described] = found.subarray(i * ENTRY_VALUES, (i + 1) * ENTRY_VALUES);
        yield sampleAt(records, start!, length!, described!);
      }
      records.close();
      entries.close();
    }
  }

  close(): void {
    for (const { records, entries } of this.#ranges) {
      records.close();
      entries.close();
    }
  }

  #rangeOf(position: number): number {
    return Math.floor((position / this.#samples) * this.#ranges.length);
  }

  #write(file: SpoolFile, bytes: Uint8Array): void {
    try {
      file.write(bytes);
    } catch (error) {
      throw asDiskFull(error, this.#folder);
    }
  }
}

function sampleAt(records: SpoolFile, start: number, length: number, described: number): SpooledSample {
  const payloads = length - described;
  const isLarge = payloads > HELD_BYTES;
  const record = new Uint8Array(isLarge ? described : length);
  records.read(record, isLarge ? start + payloads : start);
  const { key, facts, bytes, columns, fields }: Description = deserialize(record.subarray(-described));
  let at = 0;
  const read = fields.map(([name, size, sum]): NewField => {
    const from = at;
    at += size;
    if (!isLarge) return fieldOf(name, record.subarray(from, from + size), sum);
    return {
      name,
      bytes: size,
      put(place) {
        records.read(place, start + from);
        return sum;
      },
      pieces: () => piecesOf(records, start + from, size),
    };
  });
  return { key, facts, bytes, columns: new Map(columns), fields: read };
}

function* piecesOf(file: SpoolFile, from: number, bytes: number): Generator<Uint8Array> {
  const buffer = new Uint8Array(Math.min(PIECE_BYTES, bytes));
  for (let done = 0; done < bytes; done += PIECE_BYTES) {
    const piece = buffer.subarray(0, Math.min(PIECE_BYTES, bytes - done));
    file.read(piece, from + done);
    yield piece;
  }
}

/** A file without a name that is written sequentially, then read. */
class SpoolFile {
  #fd: number | null;
  readonly #buffer = new Uint8Array(BUFFER_BYTES);
  #held = 0;
  #flushed = 0;

  constructor(folder: string) {
    this.#fd = openWithoutName(folder);
  }

  /** Number of bytes that were written. */
  get bytes(): number {
    return this.#flushed + this.#held;
  }

  write(bytes: Uint8Array): void {
    if (this.#held + bytes.length > BUFFER_BYTES) this.flush();
    if (bytes.length > BUFFER_BYTES) {
      this.#append(bytes);
      return;
    }
    this.#buffer.set(bytes, this.#held);
    this.#held += bytes.length;
  }

  flush(): void {
    this.#append(this.#buffer.subarray(0, this.#held));
    this.#held = 0;
  }

  /** Fills `place` with flushed bytes from `offset` on. */
  read(place: Uint8Array, offset: number): void {
    for (let at = 0; at < place.length; ) {
      const read = readSync(this.#fd!, place, at, Math.min(PIECE_BYTES, place.length - at), offset + at);
      if (read === 0) throw new Error('A temporary file is shorter than what was written to it.');
      at += read;
    }
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #append(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(this.#fd!, bytes, done, bytes.length - done, this.#flushed + done);
    }
    this.#flushed += bytes.length;
  }
}
