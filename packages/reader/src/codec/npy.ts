import { NpyError, SampleDecodeError } from '@shardtool/base';
import { isNpy, type NpyImage, npyValuesOffset, readNpyImage } from '@shardtool/format';
import { SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from './codec.js';
import type { Scratch } from './scratch.js';

/** In bytes; NumPy's are 128. */
const LONGEST_HEADER = 1024;
/** A dataset has images of few sizes; beyond so many, what is known of their headers is forgotten. */
const MOST_KNOWN = 1024;

/** NumPy pads the header of an ordinary image to so many bytes. */
const USUAL_HEADER = 128;

/** An image that is still where it is stored. */
export interface StoredImage {
  /** Its length. */
  readonly bytes: number;
  /** Fills `bytes` bytes of `target` from `at` on with those from byte `from` of the image on. */
  read(from: number, target: Uint8Array, at: number, bytes: number): void;
}

/** Uncompressed images: nothing is decoded, the rows that are needed are taken as they lie. */
export class NpyCodec implements ImageCodec {
  readonly name = 'npy';
  #image: NpyImage = { width: 0, height: 0, offset: 0 };
  /** Images by their headers: to parse one takes as long as to copy its pixels. */
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
   * The header of an image of which nothing else is read; then {@link readRegion} has its pixels. Null where it is no
   * ordinary one: its bytes are then needed.
   */
  openStored(image: StoredImage): ImageHeader | null {
    if (image.bytes < USUAL_HEADER) return null;
    image.read(0, this.#head, 0, USUAL_HEADER);
    if (!isNpy(this.#head) || npyValuesOffset(this.#head) !== USUAL_HEADER) return null;
    const known = this.#known.get(headerOf(this.#head));
    if (known === undefined || image.bytes < known.offset + known.width * known.height * 3) return null;
    this.#image = known;
    return { width: known.width, height: known.height, reducible: false };
  }

  /** As {@link decodeRegion}, of an image that {@link openStored} knew. Only the rows of the crop are read. */
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
