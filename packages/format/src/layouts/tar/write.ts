import type { FieldSize } from '../../sample/sample-check.js';
import { SampleCheck, type SampleRules } from '../../sample/sample-check.js';
import { readsBack } from '../../sample/sample-name.js';
import { WriteBuffer } from '../bytes/write-buffer.js';
import type { FieldInPieces, FinishedShard, ShardWriter } from '../layout.js';
import { SamplePlaces } from '../sample-places.js';
import { encodeEntryHeaders, maxHeaderBytes } from './entry-headers.js';
import { BLOCK_BYTES, padded } from './header.js';

/** Two blocks of zeros (POSIX.1-2017 pax, "ustar Interchange Format"). tar pads to 10,240 bytes, which no reader requires. */
const END_BYTES = 2 * BLOCK_BYTES;

/** An entry is named `key.field`, and the name must split again at the same dot. */
export const RULES: SampleRules = {
  maxKeyBytes: Number.POSITIVE_INFINITY,
  maxFields: Number.POSITIVE_INFINITY,
  whyNotKey: (key) =>
    readsBack(key, 'x')
      ? null
      : 'would read back under another name, since a tar separates key and field at the first dot',
  formatOfOtherKeys: 'msgpack',
  whyNotField: (name) => (readsBack('x', name) ? null : 'would read back under another name (in lower case)'),
};

/**
 * Writes a tar shard: ustar headers, with pax records only if a name or a size needs them. The same samples give the
 * same bytes. Payloads are read directly into the write buffer.
 */
export class TarWriter implements ShardWriter {
  readonly #output: WriteBuffer;
  readonly #check: SampleCheck;
  /** The number of payloads of the sample being written; the offset of each from the start of its room, and its length. */
  #begun = 0;
  readonly #offsets: number[] = [];
  readonly #lengths: number[] = [];
  readonly #places = new SamplePlaces();

  /** `fd` is open on a new, empty file. `shard` is its final name, for messages. */
  constructor(fd: number, shard: string, maxSampleBytes?: number) {
    this.#output = new WriteBuffer(fd, shard);
    this.#check = new SampleCheck(shard, RULES, maxSampleBytes);
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#check.check(key, fields);
    const room = this.#output.room(roomOf(key, fields), key);
    const payloads: Uint8Array[] = [];
    let at = 0;
    for (let i = 0; i < fields.length; i++) {
      const { name, bytes } = fields[i]!;
      const offset = encodeEntryHeaders(room, at, `${key}.${name}`, bytes);
      at = offset + padded(bytes);
      room.fill(0, offset + bytes, at);
      this.#offsets[i] = offset;
      this.#lengths[i] = bytes;
      payloads.push(room.subarray(offset, offset + bytes));
    }
    this.#begun = fields.length;
    return payloads;
  }

  commit(payloadCrc32: readonly number[] = []): void {
    const count = this.#begun;
    if (count === 0) throw new Error('commit() without begin()');
    const { position } = this.#output;
    let at = 0;
    let end = 0;
    for (let i = 0; i < count; i++) {
      const bytes = this.#lengths[i]!;
      at = this.#offsets[i]!;
      end = at + bytes;
      this.#places.addPayload(position + at);
      const sum = payloadCrc32[i];
      if (sum !== undefined) this.#output.take(at, bytes, sum);
    }
    this.#places.addSample(position, end);
    this.#output.append(at + padded(end - at));
    this.#begun = 0;
  }

  discard(): void {
    this.#begun = 0;
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
    this.#places.addSample(mark.position, end - mark.position);
    for (const offset of offsets) this.#places.addPayload(offset);
    return sums;
  }

  finish(): FinishedShard {
    this.#output.room(END_BYTES).fill(0);
    this.#output.append(END_BYTES);
    this.#output.flush();
    const { position: bytes, crc32 } = this.#output;
    return { bytes, crc32, ...this.#places.toArrays() };
  }
}

/** An upper bound for the size of a sample, in bytes. */
function roomOf(key: string, fields: readonly FieldSize[]): number {
  const headerBytes = maxHeaderBytes(key);
  let sum = 0;
  for (let i = 0; i < fields.length; i++)
    sum += headerBytes + maxHeaderBytes(fields[i]!.name) + padded(fields[i]!.bytes);
  return sum;
}
