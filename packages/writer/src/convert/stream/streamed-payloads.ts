import { closeSync, readSync, writeSync } from 'node:fs';
import { crc32, openWithoutName } from '@shardtool/base';
import { asDiskFull } from '../../disk-full.js';
import { HELD_BYTES } from '../../shard/large-sample.js';
import type { NewField } from '../../shard/put-sample.js';
import { PIECE_BYTES } from '../../source/ahead/file-access.js';

/** How a payload of a stream is copied into a shard, whole or in pieces. */
export type StreamedPayload = Required<Pick<NewField, 'put' | 'pieces'>>;

/**
 * Payloads of one sample of a stream. At most {@link HELD_BYTES} of them are in memory, and the rest in an unlinked
 * file, so that large fields need only disk space.
 */
export class StreamedPayloads {
  readonly #folder: string;
  #fd: number | null = null;
  #held = 0;
  #spooled = 0;

  /** `folder` is the folder of that file. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Reads a payload from the stream, valid until {@link forget}. Throws `DiskFullError`, FileError, and errors of the
   * stream unchanged.
   */
  async take(bytes: number, pieces: AsyncIterable<Uint8Array>): Promise<StreamedPayload> {
    if (this.#held + bytes > HELD_BYTES) return this.#spool(pieces);
    this.#held += bytes;
    const held: Uint8Array[] = [];
    let sum = 0;
    for await (const piece of pieces) {
      held.push(piece);
      sum = crc32(piece, sum);
    }
    const put = (place: Uint8Array): number => {
      let at = 0;
      for (const piece of held) {
        place.set(piece, at);
        at += piece.length;
      }
      return sum;
    };
    return { put, pieces: () => held };
  }

  /** Called before the next sample. */
  forget(): void {
    this.#held = 0;
    this.#spooled = 0;
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  async #spool(pieces: AsyncIterable<Uint8Array>): Promise<StreamedPayload> {
    const start = this.#spooled;
    let sum = 0;
    try {
      this.#fd ??= openWithoutName(this.#folder);
      for await (const piece of pieces) {
        sum = crc32(piece, sum);
        for (let done = 0; done < piece.length; ) {
          done += writeSync(this.#fd, piece, done, piece.length - done, this.#spooled + done);
        }
        this.#spooled += piece.length;
      }
    } catch (error) {
      throw asDiskFull(error, this.#folder);
    }
    const [fd, end] = [this.#fd, this.#spooled];
    const put = (place: Uint8Array): number => {
      for (let at = 0; at < place.length; ) {
        at += readSync(fd, place, at, Math.min(PIECE_BYTES, place.length - at), start + at);
      }
      return sum;
    };
    function* readPieces(): Generator<Uint8Array> {
      const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
      for (let at = start; at < end; ) {
        const read = readSync(fd, buffer, 0, Math.min(PIECE_BYTES, end - at), at);
        yield buffer.subarray(0, read);
        at += read;
      }
    }
    return { put, pieces: readPieces };
  }
}
