import { NpyError, SampleDecodeError } from '@shardtool/base';
import { isNpy, type NpyImage, npyValuesOffset, readNpyImage } from '@shardtool/format';
import { SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from './codec.js';
import type { Scratch } from './scratch.js';

/** Longest header that is cached, in bytes. The headers of NumPy have 128. */
const LONGEST_HEADER = 1024;
/** Number of cached headers. Datasets have images of few sizes; if there are more, the cache is cleared. */
const MAX_KNOWN = 1024;

/** Length to which NumPy pads the header of an ordinary image, in bytes. */
const USUAL_HEADER = 128;

/** An image that has not been read from storage yet. */
export interface StoredImage {
  /** Length of the image in bytes. */
  readonly bytes: number;
  /** Reads `bytes` bytes from offset `from` of the image, and writes them to `target` from offset `at` on. */
  read(from: number, target: Uint8Array, at: number, bytes: number): void;
}

/** Uncompressed images. Nothing is decoded; the required rows are copied. */
export class NpyCodec implements ImageCodec {
  readonly name = 'npy';
  #image: NpyImage = { width: 0, height: 0, fortranOrder: false, offset: 0 };
  /** Parsed headers. Parsing a header takes as long as copying the pixels. */
  readonly #known = new Map<string, NpyImage>();
  readonly #head = new Uint8Array(USUAL_HEADER);

  header(bytes: Uint8Array): ImageHeader {
    const header = headerOf(bytes);
    const known = this.#known.get(header);
    const isWhole = known !== undefined && bytes.length >= known.offset + known.width * known.height * 3;
    this.#image = isWhole ? known : this.#read(bytes, header);
    return { width: this.#image.width, height: this.#image.height, reducible: false };
  }

  /**
   * Reads only the header of an image. {@link readRegion} then reads its pixels. Null if the header is unusual or not in the cache;
   * the whole image must be read then.
   */
  openStored(image: StoredImage): ImageHeader | null {
    if (image.bytes < USUAL_HEADER) return null;
    image.read(0, this.#head, 0, USUAL_HEADER);
    if (!isNpy(this.#head) || npyValuesOffset(this.#head) !== USUAL_HEADER) return null;
    const known = this.#known.get(headerOf(this.#head));
    // In Fortran order, the values of a crop are all over the image.
    if (known === undefined || known.fortranOrder) return null;
    if (image.bytes < known.offset + known.width * known.height * 3) return null;
    this.#image = known;
    return { width: known.width, height: known.height, reducible: false };
  }

  /** Like {@link decodeRegion}, after {@link openStored} returned a header. Only the rows of the crop are read. */
  readRegion(image: StoredImage, crop: Rect, scratch: Scratch): Pixels {
    const stride = this.#image.width * 3;
    const rows = crop.height * stride;
    const address = scratch.allocate(rows + SOURCE_SLACK_BYTES);
    image.read(this.#image.offset + crop.y * stride, scratch.memory, address, rows);
    return { offset: address + crop.x * 3, stride, warnings: 0 };
  }

  #read(bytes: Uint8Array, header: string): NpyImage {
    try {
      const image = readNpyImage(bytes);
      if (this.#known.size === MAX_KNOWN) this.#known.clear();
      if (image.offset <= LONGEST_HEADER) this.#known.set(header, image);
      return image;
    } catch (cause) {
      if (!(cause instanceof NpyError)) throw cause;
      throw new SampleDecodeError({}, cause.message, { cause });
    }
  }

  /** Copies whole rows in one call, which is faster than copying the part of each row. */
  decodeRegion(bytes: Uint8Array, crop: Rect, _reduction: Reduction, scratch: Scratch): Pixels {
    if (this.#image.fortranOrder) return this.#inCOrder(bytes, crop, scratch);
    const stride = this.#image.width * 3;
    const first = this.#image.offset + crop.y * stride;
    const rows = crop.height * stride;
    const address = scratch.allocate(rows + SOURCE_SLACK_BYTES);
    scratch.memory.set(bytes.subarray(first, first + rows), address);
    return { offset: address + crop.x * 3, stride, warnings: 0 };
  }

  /** Copies the crop value by value. */
  #inCOrder(bytes: Uint8Array, crop: Rect, scratch: Scratch): Pixels {
    const { width, height, offset } = this.#image;
    const stride = crop.width * 3;
    const address = scratch.allocate(stride * crop.height + SOURCE_SLACK_BYTES);
    const target = scratch.memory;
    for (let channel = 0; channel < 3; channel++) {
      for (let x = 0; x < crop.width; x++) {
        const from = offset + (channel * width + crop.x + x) * height + crop.y;
        const to = address + x * 3 + channel;
        for (let y = 0; y < crop.height; y++) target[to + y * stride] = bytes[from + y]!;
      }
    }
    return { offset: address, stride, warnings: 0 };
  }

  /** Always 0: {@link header} has checked the length, and nothing else can be wrong. */
  check(): number {
    return 0;
  }

  close(): void {}
}

/**
 * The header as a string, the key of the cache. For a header that is too long, only its beginning, which is never in
 * the cache.
 */
function headerOf(bytes: Uint8Array): string {
  const length = Math.min(npyValuesOffset(bytes), LONGEST_HEADER, bytes.length);
  return Buffer.from(bytes.buffer, bytes.byteOffset, length).toString('latin1');
}
