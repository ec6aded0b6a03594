import { fdatasyncSync } from 'node:fs';
import { SampleCheck, type SampleRules } from '../../sample/sample-check.js';
import { readsBack } from '../../sample/sample-name.js';
import type { FieldInPieces, FieldSize, FinishedShard, ShardWriter } from '../layout.js';
import { NumberList } from '../number-list.js';
import { COMBINE_BYTES, type SummedBytes, unwritable, WriteBuffer } from '../write-buffer.js';
import { encodeEntryHeaders, maxHeaderBytes } from './entry-headers.js';
import { BLOCK_BYTES, padded } from './header.js';

/** Two blocks of zeros (POSIX.1-2017 pax, "ustar Interchange Format"). tar pads to 10,240; no reader asks for it. */
const END_BYTES = 2 * BLOCK_BYTES;

/** An entry is called `key.field`, which has to come apart again where it was put together. */
const RULES: SampleRules = {
  maxKeyBytes: Number.POSITIVE_INFINITY,
  maxFields: Number.POSITIVE_INFINITY,
  whyNotKey: (key) => (readsBack(key, 'x') ? null : 'would not read back as it is (its last part has no dot)'),
  whyNotField: (name) => (readsBack('x', name) ? null : 'would not read back as it is (it is lower case)'),
};

/**
 * Writes a tar shard: ustar headers with pax records only where a name or a size needs them. The same samples give the
 * same bytes. Payloads go from the caller's hand straight into the buffer that is written.
 */
export class TarWriter implements ShardWriter {
  readonly #fd: number;
  readonly #shard: string;
  readonly #output: WriteBuffer;
  readonly #check: SampleCheck;
  /** Where the payloads of the sample that was begun lie, from the start of its room. */
  #begun: readonly { readonly offset: number; readonly bytes: number }[] = [];
  readonly #sampleOffset = new NumberList();
  readonly #sampleBytes = new NumberList();
  readonly #payloadOffset = new NumberList();

  /** `fd` is open on a new, empty file; `shard` is its final name, for messages. */
  constructor(fd: number, shard: string, maxSampleBytes?: number) {
    this.#fd = fd;
    this.#shard = shard;
    this.#output = new WriteBuffer(fd, shard);
    this.#check = new SampleCheck(shard, RULES, maxSampleBytes);
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#check.check(key, fields);
    const room = this.#output.room(roomOf(key, fields), key);
    const begun: { offset: number; bytes: number }[] = [];
    const payloads: Uint8Array[] = [];
    let at = 0;
    for (const { name, bytes } of fields) {
      const offset = encodeEntryHeaders(room, at, `${key}.${name}`, bytes);
      at = offset + padded(bytes);
      room.fill(0, offset + bytes, at);
      begun.push({ offset, bytes });
      payloads.push(room.subarray(offset, offset + bytes));
    }
    this.#begun = begun;
    return payloads;
  }

  commit(payloadCrc32: readonly number[] = []): void {
    const last = this.#begun.at(-1);
    if (last === undefined) throw new Error('commit() without begin()');
    const { position } = this.#output;
    this.#sampleOffset.push(position);
    this.#sampleBytes.push(last.offset + last.bytes);
    const summed: SummedBytes[] = [];
    for (const [i, { offset, bytes }] of this.#begun.entries()) {
      this.#payloadOffset.push(position + offset);
      if (payloadCrc32[i] !== undefined && bytes >= COMBINE_BYTES)
        summed.push({ offset, bytes, crc32: payloadCrc32[i] });
    }
    this.#output.append(last.offset + padded(last.bytes), summed);
    this.#begun = [];
  }

  discard(): void {
    this.#begun = [];
  }

  async writeInPieces(key: string, fields: readonly FieldInPieces[]): Promise<readonly number[]> {
    this.#check.check(key, fields);
    const output = this.#output;
    const mark = output.mark();
    const sums: number[] = [];
    const offsets: number[] = [];
    let end = 0;
    try {
      for (const { name, bytes, pieces } of fields) {
        const entry = `${key}.${name}`;
        output.append(encodeEntryHeaders(output.room(maxHeaderBytes(entry), key), 0, entry, bytes));
        offsets.push(output.position);
        end = output.position + bytes;
        sums.push(await output.pass(pieces(), bytes));
        const padding = padded(bytes) - bytes;
        output.room(padding).fill(0);
        output.append(padding);
      }
    } catch (error) {
      output.back(mark);
      throw error;
    }
    this.#sampleOffset.push(mark.position);
    this.#sampleBytes.push(end - mark.position);
    for (const offset of offsets) this.#payloadOffset.push(offset);
    return sums;
  }

  finish(): FinishedShard {
    this.#output.room(END_BYTES).fill(0);
    this.#output.append(END_BYTES);
    this.#output.flush();
    try {
      fdatasyncSync(this.#fd);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    return {
      bytes: this.#output.position,
      crc32: this.#output.crc32,
      sampleOffset: this.#sampleOffset.toArray(),
      sampleBytes: this.#sampleBytes.toArray(),
      payloadOffset: this.#payloadOffset.toArray(),
    };
  }
}

/** Bytes that suffice for a sample. */
function roomOf(key: string, fields: readonly FieldSize[]): number {
  const headerBytes = maxHeaderBytes(key);
  return fields.reduce((sum, { name, bytes }) => sum + headerBytes + maxHeaderBytes(name) + padded(bytes), 0);
}
