import { DuplicateKeyError } from '@shardtool/base';
import { splitEntryName } from '../../sample/sample-name.js';
import type { FieldPosition, OnSkipped, SamplePosition } from '../layout.js';
import { BLOCK_BYTES } from './header.js';
import type { TarEntry } from './walk.js';

/**
 * Groups the files of a shard into samples: consecutive files with the same key are one sample, as in WebDataset.
 * Unlike there, a key that occurs again later in the shard is an error, because one of the two samples would be lost.
 */
export class SampleGrouper {
  readonly #shard: string;
  readonly #onSkipped: OnSkipped | undefined;
  /** Offset of the first file of each key. */
  readonly #seen = new Map<string, number>();
  /** The sample whose files are being read. */
  #open: OpenSample | null = null;

  constructor(shard: string, onSkipped?: OnSkipped) {
    this.#shard = shard;
    this.#onSkipped = onSkipped;
  }

  /** Takes the next files and appends the samples that they complete to `samples`. */
  push(entries: readonly TarEntry[], samples: SamplePosition[]): void {
    for (const entry of entries) {
      if (entry.link !== undefined) {
        this.#onSkipped?.(entry.name, entry.start, 'link');
        continue;
      }
      const name = splitEntryName(entry.name);
      if (name === null) {
        this.#onSkipped?.(entry.name, entry.start);
        continue;
      }
      if (this.#open?.key !== name.key) {
        this.finish(samples);
        this.#begin(name.key, entry);
      }
      this.#addField(this.#open!, name.field, entry);
    }
  }

  /** Appends the last sample, at the end of the shard. */
  finish(samples: SamplePosition[]): void {
    if (this.#open !== null) samples.push(this.#open);
    this.#open = null;
  }

  #begin(key: string, entry: TarEntry): void {
    const { start } = entry;
    const first = this.#seen.get(key);
    if (first !== undefined) {
      throw new DuplicateKeyError(
        { shard: this.#shard, key, path: entry.name, offset: start, otherOffset: first },
        `${this.#shard}: the key ${JSON.stringify(key)} at byte ${start} already occurred at byte ${first}, ` +
          `with other keys in between. The files of a sample must follow each other, and each key may occur once per shard. ` +
          'Create the tar again with sorted files (tar --sort=name), or unpack it and pack the folder.',
      );
    }
    this.#seen.set(key, start);
    this.#open = { key, offset: start, bytes: 0, fields: [] };
  }

  #addField(sample: OpenSample, field: string, entry: TarEntry): void {
    for (const other of sample.fields) {
      if (other.name !== field) continue;
      const offset = entry.offset - BLOCK_BYTES;
      const otherOffset = other.offset - BLOCK_BYTES;
      throw new DuplicateKeyError(
        { shard: this.#shard, key: sample.key, path: entry.name, offset, otherOffset },
        `${this.#shard}: sample ${JSON.stringify(sample.key)} has the field "${field}" twice, ` +
          `at bytes ${otherOffset} and ${offset}; write the shard again with one of them.`,
      );
    }
    sample.fields.push({ name: field, offset: entry.offset, bytes: entry.bytes });
    sample.bytes = entry.offset + entry.bytes - sample.offset;
  }
}

interface OpenSample extends SamplePosition {
  bytes: number;
  readonly fields: FieldPosition[];
}
