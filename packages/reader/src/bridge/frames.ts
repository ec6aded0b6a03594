/**
 * What goes over the pipes between two processes: frames. A frame is its length in bytes without these four (uint32, little
 * endian), the length of its header (uint32), the header (JSON in UTF-8), and what the header announces as plain bytes.
 */
import { jsonText, parseJson } from '@shardtool/format';

const LENGTH_BYTES = 4;
/** Longer ones are not frames: the other side writes something else. */
const LONGEST_REQUEST_BYTES = 2 ** 30;

/** One frame, in one piece. The parts are copied. */
export function encodeFrame(header: unknown, parts: readonly Uint8Array[] = []): Buffer {
  const text = Buffer.from(headerText(header));
  const lengths = Buffer.alloc(2 * LENGTH_BYTES);
  const frame = Buffer.concat([lengths, text, ...parts]);
  frame.writeUInt32LE(frame.length - LENGTH_BYTES, 0);
  frame.writeUInt32LE(text.length, LENGTH_BYTES);
  return frame;
}

function headerText(header: unknown): string {
  try {
    return JSON.stringify(header);
  } catch (error) {
    // Bigints, of which Python has no other integers. Few frames have any, and this takes longer.
    if (!(error instanceof TypeError)) throw error;
    return jsonText(header);
  }
}

/** A frame that has come. */
export interface ReceivedFrame {
  readonly header: unknown;
  /** What follows the header; its own. */
  readonly rest: Uint8Array;
}

/** Puts frames together from pieces of any length. */
export class FrameDecoder {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that this piece completes. Throws where it is no frame. */
  push(piece: Uint8Array): ReceivedFrame[] {
    this.#rest = Buffer.concat([this.#rest, piece]);
    const frames: ReceivedFrame[] = [];
    while (this.#rest.length >= 2 * LENGTH_BYTES) {
      const length = this.#rest.readUInt32LE(0);
      const headerLength = this.#rest.readUInt32LE(LENGTH_BYTES);
      if (length > LONGEST_REQUEST_BYTES || headerLength > length - LENGTH_BYTES) {
        throw new RangeError(`A frame of ${length} bytes with a header of ${headerLength} came in, which cannot be.`);
      }
      if (this.#rest.length < LENGTH_BYTES + length) break;
      const restStart = 2 * LENGTH_BYTES + headerLength;
      const header: unknown = parseJson(this.#rest.toString('utf8', 2 * LENGTH_BYTES, restStart));
      frames.push({ header, rest: this.#rest.subarray(restStart, LENGTH_BYTES + length) });
      this.#rest = this.#rest.subarray(LENGTH_BYTES + length);
    }
    return frames;
  }
}
