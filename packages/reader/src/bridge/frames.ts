/**
 * What goes over the pipes between two processes: frames. A frame is its length in bytes without these four (uint32, little
 * endian), the length of its header (uint32), the header (JSON in UTF-8), and what the header announces as plain bytes.
 */

const LENGTH_BYTES = 4;
/** Longer ones are not frames: the other side writes something else. */
const LONGEST_REQUEST_BYTES = 2 ** 30;

/** One frame, in one piece. The parts are copied. */
export function encodeFrame(header: unknown, parts: readonly Uint8Array[] = []): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const lengths = Buffer.alloc(2 * LENGTH_BYTES);
  const frame = Buffer.concat([lengths, text, ...parts]);
  frame.writeUInt32LE(frame.length - LENGTH_BYTES, 0);
  frame.writeUInt32LE(text.length, LENGTH_BYTES);
  return frame;
}

/** Puts frames together from pieces of any length. */
export class FrameDecoder {
  #rest: Buffer = Buffer.alloc(0);

  /** The headers of the frames that this piece completes. Throws where it is no frame. */
  push(piece: Uint8Array): unknown[] {
    this.#rest = Buffer.concat([this.#rest, piece]);
    const headers: unknown[] = [];
    while (this.#rest.length >= 2 * LENGTH_BYTES) {
      const length = this.#rest.readUInt32LE(0);
      const headerLength = this.#rest.readUInt32LE(LENGTH_BYTES);
      if (length > LONGEST_REQUEST_BYTES || headerLength > length - LENGTH_BYTES) {
        throw new RangeError(`A frame of ${length} bytes with a header of ${headerLength} came in, which cannot be.`);
      }
      if (this.#rest.length < LENGTH_BYTES + length) break;
      headers.push(JSON.parse(this.#rest.toString('utf8', 2 * LENGTH_BYTES, 2 * LENGTH_BYTES + headerLength)));
      this.#rest = this.#rest.subarray(LENGTH_BYTES + length);
    }
    return headers;
  }
}
