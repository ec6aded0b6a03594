import { joined } from '@shardtool/base';
import { compressedWhole, compressionOf } from '../bytes/compressed.js';
import { cutBeforeEnd, cutInPayload } from './faults.js';
import { BLOCK_BYTES } from './header.js';
import { type TarEntry, TarWalk } from './walk.js';

/** A file from an archive that is read as a stream. */
export interface StreamedFile extends TarEntry {
  /**
   * The payload as it arrives. Consume it before you request the next file, which skips the rest. If the stream ends
   * early, fewer bytes arrive, and the request for the next file throws.
   */
  readonly pieces: AsyncIterable<Uint8Array>;
}

/**
 * Yields the files of an archive that can only be read sequentially, by the same rules as {@link scanEntries}. Holds
 * one piece in memory. Throws DamagedShardError for an invalid header, UnsupportedEntryError for devices,
 * UnsupportedShardError for a compressed archive, EntryNameError for names that lead out of their folder, and
 * TruncatedShardError if the stream ends early.
 */
export async function* streamFiles(chunks: AsyncIterable<Uint8Array>, shard: string): AsyncGenerator<StreamedFile> {
  const walk = new TarWalk(shard, Number.POSITIVE_INFINITY);
  const input = new Incoming(chunks);
  const found: TarEntry[] = [];
  for (;;) {
    // After the zeros that end the archive, all data is checked as it arrives; before them, one header at a time.
    const isFirst = walk.position === 0;
    const window = walk.ended ? await input.next() : await input.take(walk.needed);
    if (walk.ended && window.length === 0) return;
    try {
      if (!walk.ended && window.length < walk.needed) throw cutBeforeEnd(shard, input.position);
      walk.advance(window, found);
    } catch (error) {
      const compression = isFirst ? compressionOf(window) : null;
      throw compression === null ? error : compressedWhole(shard, compression);
    }
    const file = found.pop();
    if (file !== undefined) {
      yield { ...file, pieces: input.upTo(file.offset + file.bytes) };
      for await (const _ of input.upTo(file.offset + file.bytes));
      const left = input.position - file.offset;
      if (left < file.bytes) throw cutInPayload(shard, file.offset - BLOCK_BYTES, file.name, file.bytes, left);
    } else if (walk.position < input.position) {
      // The record is longer than the window: put the bytes back and read all of it.
      input.putBack(window);
    }
    for await (const _ of input.upTo(walk.position));
    if (input.position < walk.position) throw cutBeforeEnd(shard, input.position);
  }
}

/** Reads the bytes of a stream, whatever the sizes of its chunks. */
class Incoming {
  /** Offset of the next byte. */
  position = 0;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The next bytes as they arrive, at most `most`; an empty buffer at the end. */
  async next(most = Number.POSITIVE_INFINITY): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) return Buffer.alloc(0);
      this.#rest = next.value;
    }
    const { buffer, byteOffset, length } = this.#rest;
    const taken = Math.min(most, length);
    this.#rest = this.#rest.subarray(taken);
    this.position += taken;
    return Buffer.from(buffer, byteOffset, taken);
  }

  /** Yields the bytes before `end`, or the rest of the stream, as they arrive. */
  async *upTo(end: number): AsyncGenerator<Uint8Array> {
    while (this.position < end) {
      const piece = await this.next(end - this.position);
      if (piece.length === 0) break;
      yield piece;
    }
  }

  /** The next `bytes` bytes, or the rest of the stream, in one buffer that is aligned to 4 bytes. */
  async take(bytes: number): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.upTo(this.position + bytes)) pieces.push(piece);
    return Buffer.from(joined(pieces, Uint8Array).buffer);
  }

  /** Puts back the bytes that were taken last. */
  putBack(bytes: Uint8Array): void {
    this.position -= bytes.length;
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([bytes, this.#rest]);
  }
}
