import { ftruncateSync } from 'node:fs';
import { crc32, crc32Combine, DuplicateKeyError, SampleSizeError } from '@shardtool/base';
import type { FieldSize } from '../../../sample/sample-check.js';
import { mapRules, SampleCheck } from '../../../sample/sample-check.js';
import type { SummedBytes } from '../../../sample/sample-codec.js';
import { summedPayloads, type ValueEncoder } from '../../../sample/sample-codec.js';
import { crc32Around, unwritable, WriteBuffer, writeAt } from '../../bytes/write-buffer.js';
import type { FinishedShard, ShardWriter } from '../../layout.js';
import { NumberList } from '../../number-list.js';
import { PositionLog } from '../../position-log.js';
import { encodeMetas } from '../meta.js';
import {
  encodeRunHeader,
  FIRST_DATA_PAGE,
  fitsLeaf,
  MAX_KEY_BYTES,
  MAX_VALUE_BYTES,
  PAGE_BYTES,
  PAGE_HEADER_BYTES,
  runPages,
} from '../page.js';
import { ShardKeys } from './shard-keys.js';
import { SmallValues } from './small-values.js';
import { writeTree } from './tree.js';

export const RULES = mapRules(MAX_KEY_BYTES);

/**
 * Writes an LMDB shard in one pass: large values are written to overflow pages as they arrive, small ones are kept
 * until the tree is written after them, and the meta pages at the front come last. So memory holds the keys and the
 * small values. An unfinished file has no meta pages, so nothing takes it for a database. The same samples give the
 * same bytes.
 */
export class LmdbWriter implements ShardWriter {
  readonly #fd: number;
  readonly #shard: string;
  readonly #output: WriteBuffer;
  readonly #check: SampleCheck;
  readonly #encoder: ValueEncoder;
  readonly #keys = new ShardKeys();
  readonly #small = new SmallValues();
  readonly #valueBytes = new NumberList();
  readonly #valuePlace = new NumberList();
  readonly #log = new PositionLog();
  #runPages = 0;
  /** The current sample: its key, and its room in the output with the page header first. */
  #begun: { key: Buffer; room: Buffer } | null = null;

  /** `fd` is open on a new, empty file; `shard` is its final name, for messages. */
  constructor(fd: number, shard: string, encoder: ValueEncoder, maxSampleBytes?: number) {
    this.#fd = fd;
    this.#shard = shard;
    this.#output = new WriteBuffer(fd, shard, FIRST_DATA_PAGE * PAGE_BYTES);
    this.#check = new SampleCheck(shard, RULES, maxSampleBytes);
    this.#encoder = encoder;
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#check.check(key, fields);
    const keyBytes = Buffer.from(key);
    if (this.#keys.has(keyBytes)) throw this.#duplicate(key);
    const most = plannedBytes(this.#encoder, this.#shard, key, fields);
    const room = this.#output.room(runPages(most, PAGE_BYTES) * PAGE_BYTES, key);
    this.#begun = { key: keyBytes, room };
    return this.#encoder.layOut(room.subarray(PAGE_HEADER_BYTES));
  }

  commit(payloadCrc32: readonly number[] = []): void {
    if (this.#begun === null) throw new Error('commit() without begin()');
    const { key, room } = this.#begun;
    this.#begun = null;
    const bytes = this.#encoder.settle(payloadCrc32);
    if (fitsLeaf(key.length, bytes, PAGE_BYTES)) {
      const value = room.subarray(PAGE_HEADER_BYTES, PAGE_HEADER_BYTES + bytes);
      const sum = crc32Around(value, summedPayloads(this.#encoder.placed, payloadCrc32));
      this.#valuePlace.push(this.#small.add(value, sum));
    } else {
      const summed = summedPayloads(this.#encoder.placed, payloadCrc32, PAGE_HEADER_BYTES);
      this.#valuePlace.push(this.#appendRun(room, bytes, summed));
    }
    this.#keys.add(key);
    this.#valueBytes.push(bytes);
    this.#log.add(bytes, this.#encoder.placed);
  }

  discard(): void {
    this.#begun = null;
  }

  finish(): FinishedShard {
    const valueBytes = this.#valueBytes.toArray();
    const valueOffset = new Float64Array(valueBytes.length);
    const tree = writeTree(this.#output, {
      keys: this.#keys,
      order: this.#keys.sorted(),
      valueBytes,
      valuePlace: this.#valuePlace.toArray(),
      small: this.#small,
      valueOffset,
    });
    this.#output.flush();
    const bytes = this.#output.position;
    const lastPage = bytes / PAGE_BYTES - 1;
    const metas = encodeMetas({ ...tree, entries: this.#keys.count, runPages: this.#runPages }, lastPage, PAGE_BYTES);
    this.#writeMetas(metas, bytes);
    const checksum = crc32Combine(crc32(metas), this.#output.crc32, bytes - metas.length);
    return { bytes, crc32: checksum, ...this.#log.positions(valueOffset) };
  }

  /**
   * Completes the pages of a value that is already in its room, and returns the number of the first page. `summed`
   * counts from the start of the room.
   */
  #appendRun(room: Buffer, bytes: number, summed: readonly SummedBytes[]): number {
    const pages = runPages(bytes, PAGE_BYTES);
    const number = this.#output.position / PAGE_BYTES;
    encodeRunHeader(room, number, pages);
    room.fill(0, PAGE_HEADER_BYTES + bytes, pages * PAGE_BYTES);
    this.#output.append(pages * PAGE_BYTES, summed);
    this.#runPages += pages;
    return number;
  }

  #writeMetas(metas: Buffer, bytes: number): void {
    try {
      ftruncateSync(this.#fd, bytes);
      writeAt(this.#fd, metas, 0);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
  }

  #duplicate(key: string): DuplicateKeyError {
    const shard = this.#shard;
    const message = `${shard}: the key "${key}" occurs twice; each key may occur once per shard.`;
    return new DuplicateKeyError({ shard, key }, message);
  }
}

/** An upper bound for the size of a sample's value, in bytes. Throws {@link SampleSizeError} if it exceeds LMDB's own limit. */
export function plannedBytes(encoder: ValueEncoder, shard: string, key: string, fields: readonly FieldSize[]): number {
  const bytes = encoder.plan(key, fields);
  if (bytes <= MAX_VALUE_BYTES) return bytes;
  const message = `${shard}: sample "${key}" takes ${bytes} bytes, but LMDB holds at most ${MAX_VALUE_BYTES}; omit it, or pack to tar.`;
  throw new SampleSizeError({ shard, key, bytes, limit: MAX_VALUE_BYTES }, message);
}
