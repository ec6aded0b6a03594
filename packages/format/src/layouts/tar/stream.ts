import { compressedWhole, compressionOf } from '../compressed.js';
import { cutBeforeEnd, cutInPayload } from './faults.js';
import { BLOCK_BYTES } from './header.js';
import { type TarEntry, TarWalk } from './walk.js';

/** A file out of an archive that comes as a stream. */
export interface StreamedFile extends TarEntry {
  /**
   * Its payload as it comes: to be taken before the next file is asked for, which passes over what was not taken. Of a
   * stream that ends too early fewer bytes come, and asking for the next file throws.
   */
  readonly pieces: AsyncIterable<Uint8Array>;
}

/**
 * Yields the files of an archive that can only be read from its beginning to its end, by the same rules as one that lies
 * on a disk. Holds one piece. Throws DamagedShardError for a header that is not right, UnsupportedEntryError for
 * devices, UnsupportedShardError for one that is compressed, EntryNameError for names that lead out of their folder,
 * TruncatedShardError where the stream ends too early.
 */
export async function* streamFiles(chunks: AsyncIterable<Uint8Array>, shard: string): AsyncGenerator<StreamedFile> {
  const walk = new TarWalk(shard, Number.POSITIVE_INFINITY);
  const input = new Incoming(chunks);
  const found: TarEntry[] = [];
  for (;;) {
    // Behind the zeros that end the archive, whatever comes is looked at; before them, one header at a time.
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
      // A record that is longer than the window: it comes once more, whole.
      input.putBack(window);
    }
    for await (const _ of input.upTo(walk.position));
    if (input.position < walk.position) throw cutBeforeEnd(shard, input.position);
  }
}

/** The bytes of a stream, in whatever pieces they come. */
class Incoming {
  /** Of the next byte. */
  position = 0;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The next bytes as they come, `most` at most; none at the end. */
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

  /** What stands before `end`, or is left, as it comes. */
  async *upTo(end: number): AsyncGenerator<Uint8Array> {
    while (this.position < end) {
      const piece = await this.next(end - this.position);
      if (piece.length === 0) break;
      yield piece;
    }
  }

  /** The next `bytes`, or what is left, in one piece, which begins on a multiple of 4 in memory. */
  async take(bytes: number): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.upTo(this.position + bytes)) pieces.push(piece);
    const whole = Buffer.allocUnsafeSlow(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  /** What was taken last comes again. */
  putBack(bytes: Uint8Array): void {
    this.position -= bytes.length;
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([bytes, this.#rest]);
  }
}
