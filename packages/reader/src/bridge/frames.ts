/**
 * Frames: the messages on the pipes between two processes. A frame consists of its length without these four bytes
 * (uint32, little endian), the length of its header (uint32), the header (JSON in UTF-8), and bytes that the header
 * announces.
 */
import { jsonText, parseJson } from '@shardtool/format';

const LENGTH_BYTES = 4;
/** A longer frame is an error: the other side is not writing frames. */
const LONGEST_REQUEST_BYTES = 2 ** 30;

/** Encodes one frame as one buffer. The parts are copied. */
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
    // Converts bigints to numbers, because all integers of Python are of one type. Few frames contain bigints, and this
    // takes longer.
    if (!(error instanceof TypeError)) throw error;
    return jsonText(header);
  }
}

/** A frame that was received. */
export interface ReceivedFrame {
  readonly header: unknown;
  /** The bytes after the header, in separate memory. */
  readonly rest: Uint8Array;
}

/** Combines pieces of any length to frames. */
export class FrameDecoder {
  #rest: Buffer = Buffer.alloc(0);

  /** Returns the frames that this piece completes. Throws if the bytes are not a frame. */
  push(piece: Uint8Array): ReceivedFrame[] {
    this.#rest = Buffer.concat([this.#rest, piece]);
    const frames: ReceivedFrame[] = [];
    while (this.#rest.length >= 2 * LENGTH_BYTES) {
      const length = this.#rest.readUInt32LE(0);
      const headerLength = this.#rest.readUInt32LE(LENGTH_BYTES);
      if (length > LONGEST_REQUEST_BYTES || headerLength > length - LENGTH_BYTES) {
        throw new RangeError(
          `A frame of ${length} bytes with a header of ${headerLength} was received, which is not possible.`,
        );
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
