import { fdatasyncSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { crc32Combine } from '../../crc32-combine.js';
import { EntryNameError, FileError, OptionError, ShardtoolError } from '../../errors.js';
import { readsBack, whyUnsafe } from '../../sample/sample-name.js';
import type { FieldSize, FinishedShard, ShardWriter } from '../layout.js';
import { NumberList } from '../number-list.js';
import { encodeEntryHeaders, maxHeaderBytes } from './entry-headers.js';
import { BLOCK_BYTES, padded } from './header.js';

/**
 * Samples are collected here, and go to the file in one write. What was read into it is still in the processor's cache
 * when it is summed up and written: with 16 MiB all of it takes a sixth longer.
 */
const BUFFER_BYTES = 1 << 20;
/** One larger sample is often not the last: the buffer then doubles, up to this. */
const DOUBLED_BYTES = 64 << 20;
/** From here on combining two checksums is quicker than reading the bytes again. */
const COMBINE_BYTES = 8 << 10;
/** Two blocks of zeros (POSIX.1-2017 pax, "ustar Interchange Format"). tar pads to 10,240; no reader asks for it. */
const END_BYTES = 2 * BLOCK_BYTES;

/**
 * Writes a tar shard: ustar headers with pax records only where a name or a size needs them. The same samples give the
 * same bytes. Payloads go from the caller's hand straight into the buffer that is written.
 */
export class TarWriter implements ShardWriter {
  readonly #fd: number;
  readonly #shard: string;
  #buffer = new Uint8Array(BUFFER_BYTES);
  /** Where in the file the buffer begins. */
  #bufferStart = 0;
  /** Where in the buffer the complete samples end. */
  #committed = 0;
  /** How far in the buffer the checksum has come. */
  #summed = 0;
  #crc = 0;
  #begunPayloads: readonly Uint8Array[] = [];
  /** Where in the buffer the last payload ends of the sample that was begun; 0 when there is none. */
  #begunEnd = 0;
  /** How many payload offsets belong to complete samples. */
  #committedPayloads = 0;
  readonly #knownFields = new Set<string>();
  readonly #sampleOffset = new NumberList();
  readonly #sampleBytes = new NumberList();
  readonly #payloadOffset = new NumberList();

  /** `fd` is open on a new, empty file; `shard` is its final name, for messages. */
  constructor(fd: number, shard: string) {
    this.#fd = fd;
    this.#shard = shard;
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#checkNames(key, fields);
    this.discard();
    this.#makeRoom(key, fields);
    const payloads: Uint8Array[] = [];
    let at = this.#committed;
    for (const { name, bytes } of fields) {
      const payloadAt = encodeEntryHeaders(this.#buffer, at, `${key}.${name}`, bytes);
      this.#begunEnd = payloadAt + bytes;
      at = payloadAt + padded(bytes);
      this.#buffer.fill(0, this.#begunEnd, at);
      this.#payloadOffset.push(this.#bufferStart + payloadAt);
      payloads.push(this.#buffer.subarray(payloadAt, this.#begunEnd));
    }
    this.#begunPayloads = payloads;
    return payloads;
  }

  commit(payloadCrc32: readonly number[] = []): void {
    if (this.#begunEnd === 0) throw new Error('commit() without begin()');
    for (let i = 0; i < payloadCrc32.length; i++) this.#sumPayload(this.#begunPayloads[i]!, payloadCrc32[i]!);
    this.#sampleOffset.push(this.#bufferStart + this.#committed);
    this.#sampleBytes.push(this.#begunEnd - this.#committed);
    this.#committed = padded(this.#begunEnd);
    this.#begunEnd = 0;
    this.#committedPayloads = this.#payloadOffset.length;
  }

  discard(): void {
    this.#begunEnd = 0;
    this.#payloadOffset.truncate(this.#committedPayloads);
  }

  finish(): FinishedShard {
    this.discard();
    if (this.#committed + END_BYTES > this.#buffer.length) this.#flush();
    this.#buffer.fill(0, this.#committed, this.#committed + END_BYTES);
    this.#committed += END_BYTES;
    this.#flush();
    try {
      fdatasyncSync(this.#fd);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    return {
      bytes: this.#bufferStart,
      crc32: this.#crc,
      sampleOffset: this.#sampleOffset.toArray(),
      sampleBytes: this.#sampleBytes.toArray(),
      payloadOffset: this.#payloadOffset.toArray(),
    };
  }

  /** Refuses what would read back as another sample, or not at all. */
  #checkNames(key: string, fields: readonly FieldSize[]): void {
    const shard = this.#shard;
    if (fields.length === 0) throw new OptionError({ shard, key }, `${shard}: sample "${key}" has no field to write.`);
    const reason = whyUnsafe(key);
    if (reason !== null) {
      throw new EntryNameError(
        { shard, key },
        `${shard}: the key ${JSON.stringify(key)} ${reason}; choose a relative one.`,
      );
    }
    if (!readsBack(key, 'x') || loneSurrogate.test(key)) throw notReadBack(shard, key, 'key');
    let last: string | undefined;
    for (const { name } of fields) {
      if (name === last) throw new OptionError({ shard, key }, `${shard}: sample "${key}" has two fields "${name}".`);
      last = name;
      if (this.#knownFields.has(name)) continue;
      if (!readsBack('x', name) || whyUnsafe(name) !== null || loneSurrogate.test(name)) {
        throw notReadBack(shard, key, `field "${name}"`);
      }
      this.#knownFields.add(name);
    }
  }

  /** Empties the buffer where the sample would not fit behind the others, and takes a larger one where it must. */
  #makeRoom(key: string, fields: readonly FieldSize[]): void {
    let room = 0;
    for (const { name, bytes } of fields) room += maxHeaderBytes(key) + maxHeaderBytes(name) + padded(bytes);
    if (this.#committed + room > this.#buffer.length) this.#flush();
    if (room <= this.#buffer.length) return;
    try {
      this.#buffer = new Uint8Array(Math.max(room, Math.min(2 * this.#buffer.length, DOUBLED_BYTES)));
    } catch (cause) {
      const shard = this.#shard;
      const message = `${shard}: sample "${key}" needs ${room} bytes of memory, more than there is; leave it out.`;
      throw new ShardtoolError({ shard, key }, message, { cause });
    }
  }

  /** Takes the checksum up to `end` in the buffer. */
  #sumTo(end: number): void {
    this.#crc = crc32(this.#buffer.subarray(this.#summed, end), this.#crc);
    this.#summed = end;
  }

  /** Takes a payload's own checksum into the file's; a short one is quicker to read again with the rest. */
  #sumPayload(payload: Uint8Array, payloadCrc32: number): void {
    if (payload.length < COMBINE_BYTES) return;
    this.#sumTo(payload.byteOffset - this.#buffer.byteOffset);
    this.#crc = crc32Combine(this.#crc, payloadCrc32, payload.length);
    this.#summed += payload.length;
  }

  #flush(): void {
    this.#sumTo(this.#committed);
    try {
      for (let at = 0; at < this.#committed; ) at += writeSync(this.#fd, this.#buffer, at, this.#committed - at);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    this.#bufferStart += this.#committed;
    this.#committed = 0;
    this.#summed = 0;
  }
}

/** UTF-16 that is no text: it would become U+FFFD, and two names could become one. */
const loneSurrogate = /\p{Surrogate}/u;

function notReadBack(shard: string, key: string, what: string): EntryNameError {
  const message =
    `${shard}: the ${what} of sample ${JSON.stringify(key)} would not read back as it is; ` +
    `the last part of a key has no dot, and a field is lower case and has no slash.`;
  return new EntryNameError({ shard, key }, message);
}

function unwritable(shard: string, cause: unknown): FileError {
  const remedy =
    (cause as NodeJS.ErrnoException).code === 'ENOSPC' ? 'free some space on its disk' : 'check its folder';
  const message = `${shard} cannot be written (${(cause as Error).message}); ${remedy}, then pack again.`;
  return new FileError({ shard, path: shard }, message, { cause });
}
