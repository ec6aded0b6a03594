import type { FieldSize } from '../../sample/sample-check.js';
import { mapRules, SampleCheck } from '../../sample/sample-check.js';
import { MapEncoder, summedPayloads } from '../../sample/sample-codec.js';
import { WriteBuffer } from '../bytes/write-buffer.js';
import type { FinishedShard, ShardWriter } from '../layout.js';
import { NumberList } from '../number-list.js';
import { PositionLog } from '../position-log.js';

/** The maximum key length is that of the reader. */
export const RULES = mapRules(0xffff);

/** Writes a msgpack shard: one map per sample. The same samples give the same bytes. */
export class MsgpackWriter implements ShardWriter {
  readonly #output: WriteBuffer;
  readonly #check: SampleCheck;
  readonly #encoder = new MapEncoder(true);
  readonly #sampleOffset = new NumberList();
  readonly #log = new PositionLog();
  #begun = false;

  /** `fd` is open on a new, empty file; `shard` is its final name, for messages. */
  constructor(fd: number, shard: string, maxSampleBytes?: number) {
    this.#output = new WriteBuffer(fd, shard);
    this.#check = new SampleCheck(shard, RULES, maxSampleBytes);
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#check.check(key, fields);
    this.#begun = true;
    return this.#encoder.layOut(this.#output.room(this.#encoder.plan(key, fields), key));
  }

  commit(payloadCrc32: readonly number[] = []): void {
    if (!this.#begun) throw new Error('commit() without begin()');
    this.#begun = false;
    const bytes = this.#encoder.settle(payloadCrc32);
    this.#sampleOffset.push(this.#output.position);
    this.#log.add(bytes, this.#encoder.placed);
    this.#output.append(bytes, summedPayloads(this.#encoder.placed, payloadCrc32));
  }

  discard(): void {
    this.#begun = false;
  }

  finish(): FinishedShard {
    this.#output.flush();
    const { position, crc32 } = this.#output;
    return { bytes: position, crc32, ...this.#log.positions(this.#sampleOffset.toArray()) };
  }
}
