import { NpyError, type NpyImage, readNpyImage, SampleDecodeError } from '@shardtool/format';
import { SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from './codec.js';
import type { Scratch } from './scratch.js';

/** Uncompressed images: nothing is decoded, the rows that are needed are taken as they lie. */
export class NpyCodec implements ImageCodec {
  readonly name = 'npy';
  #image: NpyImage = { width: 0, height: 0, offset: 0 };
  /** The header of the image before: images of a dataset mostly have the same, and parsing it takes as long as copying. */
  #known: Uint8Array = new Uint8Array(0);

  header(bytes: Uint8Array): ImageHeader {
    if (!this.#isKnown(bytes)) {
      try {
        this.#image = readNpyImage(bytes);
      } catch (cause) {
        if (!(cause instanceof NpyError)) throw cause;
        throw new SampleDecodeError({}, cause.message, { cause });
      }
      this.#known = new Uint8Array(bytes.subarray(0, this.#image.offset));
    }
    return { width: this.#image.width, height: this.#image.height, reducible: false };
  }

  #isKnown(bytes: Uint8Array): boolean {
    const { width, height, offset } = this.#image;
    if (offset === 0 || bytes.length < offset + width * height * 3) return false;
    return Buffer.compare(this.#known, bytes.subarray(0, offset)) === 0;
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
