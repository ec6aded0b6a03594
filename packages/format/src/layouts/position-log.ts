import type { PlacedField } from '../sample/sample-codec.js';
import type { FinishedShard } from './layout.js';
import { NumberList } from './number-list.js';

/** Keeps the positions of the fields in each sample's value until the offsets of the values in the file are known. */
export class PositionLog {
  readonly #sampleBytes = new NumberList();
  readonly #sampleFields = new NumberList();
  readonly #offset = new NumberList();
  readonly #bytes = new NumberList();
  readonly #msgpack = new NumberList();
  #anyMsgpack = false;

  /** Adds the next sample: the length of its value, and the positions of its fields in it. */
  add(sampleBytes: number, placed: readonly PlacedField[]): void {
    this.#sampleBytes.push(sampleBytes);
    this.#sampleFields.push(placed.length);
    for (const { offset, bytes, msgpack } of placed) {
      this.#offset.push(offset);
      this.#bytes.push(bytes);
      this.#msgpack.push(msgpack ? 1 : 0);
      this.#anyMsgpack ||= msgpack;
    }
  }

  /** `sampleOffset`: the offset of each sample's value in the file. */
  positions(sampleOffset: Float64Array): Omit<FinishedShard, 'bytes' | 'crc32'> {
    const fields = this.#sampleFields.toArray();
    const payloadOffset = this.#offset.toArray();
    let next = 0;
    for (let sample = 0; sample < sampleOffset.length; sample++) {
      for (const end = next + fields[sample]!; next < end; next++) payloadOffset[next]! += sampleOffset[sample]!;
    }
    const positions = { sampleOffset, sampleBytes: this.#sampleBytes.toArray(), payloadOffset };
    if (!this.#anyMsgpack) return positions;
    const payloadMsgpack = Uint8Array.from(this.#msgpack.toArray());
    return { ...positions, payloadBytes: this.#bytes.toArray(), payloadMsgpack };
  }
}
