import { NpyError, type NpyImage, npyValuesOffset, readNpyImage, SampleDecodeError } from '@shardtool/format';
import { SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from './codec.js';
import type { Scratch } from './scratch.js';

/** In bytes; NumPy's are 128. */
const LONGEST_HEADER = 1024;
/** A dataset has images of few sizes; beyond so many, what is known of their headers is forgotten. */
const MOST_KNOWN = 1024;

/** Uncompressed images: nothing is decoded, the rows that are needed are taken as they lie. */
export class NpyCodec implements ImageCodec {
  readonly name = 'npy';
  #image: NpyImage = { width: 0, height: 0, offset: 0 };
  /** Images by their headers: to parse one takes as long as to copy its pixels. */
  readonly #known = new Map<string, NpyImage>();

  header(bytes: Uint8Array): ImageHeader {
    const header = headerOf(bytes);
    const known = this.#known.get(header);
    const isWhole = known !== undefined && bytes.length >= known.offset + known.width * known.height * 3;
    this.#image = isWhole ? known : this.#read(bytes, header);
    return { width: this.#image.width, height: this.#image.height, reducible: false };
  }

  #read(bytes: Uint8Array, header: string): NpyImage {
    try {
      const image = readNpyImage(bytes);
      if (this.#known.size === MOST_KNOWN) this.#known.clear();
      if (image.offset <= LONGEST_HEADER) this.#known.set(header, image);
      return image;
    } catch (cause) {
      if (!(cause instanceof NpyError)) throw cause;
      throw new SampleDecodeError({}, cause.message, { cause });
    }
  }

  /** Whole rows, at once: that is faster than the parts of them one by one. */
  decodeRegion(bytes: Uint8Array, crop: Rect, _reduction: Reduction, scratch: Scratch): Pixels {
    const stride = this.#image.width * 3;
    const first = this.#image.offset + crop.y * stride;
    const rows = crop.height * stride;
    const address = scratch.allocate(rows + SOURCE_SLACK_BYTES);
    scratch.memory.set(bytes.subarray(first, first + rows), address);
    return { offset: address + crop.x * 3, stride, warnings: 0 };
  }

  /** The header says how many bytes there are: nothing else can be wrong. */
  check(): number {
    return 0;
  }

  close(): void {}
}

/** As text, which a map can look up. Of a longer one only the beginning, which is never known. */
function headerOf(bytes: Uint8Array): string {
  const length = Math.min(npyValuesOffset(bytes), LONGEST_HEADER, bytes.length);
  return Buffer.from(bytes.buffer, bytes.byteOffset, length).toString('latin1');
}
