import { closeSync, openSync, readSync } from 'node:fs';
import { crc32, FileError, reasonOf } from '@shardtool/base';
import { HELD_BYTES } from '../shard/large-sample.js';
import { fieldOf, type NewField } from '../shard/put-sample.js';
import { PIECE_BYTES } from '../source/ahead/file-access.js';
import { READ_NOW } from '../source/source-file.js';

/** A payload that was found: in memory, or only its position if it is large. */
export interface Payload {
  readonly bytes: number;
  readonly crc32: number;
  /** Reads all of it into memory. Throws {@link FileError}. */
  whole(): Uint8Array;
  /** Returns it as a field of a new shard, which reads it again if it is not in memory. */
  as(name: string): NewField;
}

/** A payload that is in memory. */
export function heldPayload(payload: Uint8Array): Payload {
  const sum = crc32(payload);
  return {
    bytes: payload.length,
    crc32: sum,
    whole: () => payload,
    as: (name) => fieldOf(name, payload, sum),
  };
}

/**
 * A range of a file. It is kept in memory if it has at most {@link HELD_BYTES}, otherwise it is checksummed in pieces.
 * Throws {@link FileError} if it cannot be read.
 */
export function payloadIn(path: string, offset: number, bytes: number): Payload {
  const stretch = new Stretch(path, offset, bytes);
  return bytes > HELD_BYTES ? stretch.summedUp() : heldPayload(stretch.whole());
}

class Stretch implements Payload {
  readonly bytes: number;
  readonly #path: string;
  readonly #offset: number;
  #crc32: number | null = null;

  constructor(path: string, offset: number, bytes: number) {
    this.#path = path;
    this.#offset = offset;
    this.bytes = bytes;
  }

  get crc32(): number {
    return this.#crc32!;
  }

  summedUp(): this {
    this.#put(null);
    return this;
  }

  whole(): Uint8Array {
    const whole = new Uint8Array(this.bytes);
    this.#put(whole);
    return whole;
  }

  as(name: string): NewField {
    return { name, bytes: this.bytes, put: (place) => this.#put(place), pieces: () => this.#read() };
  }

  #put(place: Uint8Array | null): number {
    let at = 0;
    for (const piece of this.#read()) {
      place?.set(piece, at);
      at += piece.length;
    }
    return this.crc32;
  }

  /** Yields pieces, each valid until the next. Throws if the bytes have changed since they were checksummed. */
  *#read(): Generator<Uint8Array> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, this.bytes));
    let fd: number | undefined;
    let sum = 0;
    try {
      fd = openSync(this.#path, READ_NOW);
      for (let done = 0; done < this.bytes; ) {
        const read = readSync(fd, buffer, 0, Math.min(buffer.length, this.bytes - done), this.#offset + done);
        if (read === 0) throw this.#changed();
        done += read;
        const piece = buffer.subarray(0, read);
        sum = crc32(piece, sum);
        yield piece;
      }
    } catch (cause) {
      if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
      throw new FileError({ path: this.#path }, `${this.#path} cannot be read: ${reasonOf(cause)}.`, { cause });
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
    this.#crc32 ??= sum;
    if (this.#crc32 !== sum) throw this.#changed();
  }

  #changed(): FileError {
    const message = `${this.#path} changed while it was read; run the repair again when no other process writes to it.`;
    return new FileError({ path: this.#path }, message);
  }
}
