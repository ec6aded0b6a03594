import { type ImageKind, probeImage } from '@shardtool/format';
import { bmpDecoder } from './bmp.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from './codec.js';
import { asDecodeError } from './decode-error.js';
import { gifDecoder } from './gif.js';
import { pnmDecoder } from './pnm.js';
import type { Scratch } from './scratch.js';

/** Decodes one kind of image without a library. All functions throw SampleDecodeError for a damaged image. */
export interface OwnDecoder {
  /** The RGB pixels of a part of the image, in a new array. */
  pixels(bytes: Uint8Array, crop: Rect): Uint8Array;
  /** The opacity of each pixel of a part of the image, 0 to 255; null if the image has no alpha. */
  alpha(bytes: Uint8Array, crop: Rect): Uint8Array | null;
  /** Decodes the whole image and discards the pixels. */
  check(bytes: Uint8Array): void;
}

/** The kinds that libvips cannot read, or reads with pixels that differ from Pillow's. */
const DECODERS: { readonly [Kind in ImageKind]?: OwnDecoder } = {
  gif: gifDecoder,
  bmp: bmpDecoder,
  pnm: pnmDecoder,
};

/** The decoder of a kind; undefined if sharp decodes it. */
export function ownDecoder(kind: ImageKind | undefined): OwnDecoder | undefined {
  return kind === undefined ? undefined : DECODERS[kind];
}

/** Decodes GIF, BMP, PPM, PGM and PBM to the pixels of Pillow's `convert('RGB')`. */
export class OwnCodec implements ImageCodec {
  readonly name = 'own';
  #decoder: OwnDecoder = gifDecoder;

  header(bytes: Uint8Array): ImageHeader {
    try {
      // The caller checks the limit on pixels.
      const { kind, width, height, precision } = probeImage(bytes, 'it', Number.POSITIVE_INFINITY);
      this.#decoder = DECODERS[kind]!;
      return { width, height, reducible: false, isNarrowed: precision === 'narrowed' };
    } catch (error) {
      throw asDecodeError(error as Error);
    }
  }

  decodeRegion(bytes: Uint8Array, crop: Rect, _reduction: Reduction, scratch: Scratch): Pixels {
    const stride = crop.width * 3;
    const offset = scratch.allocate(stride * crop.height);
    scratch.memory.set(this.#decoder.pixels(bytes, crop), offset);
    return { offset, stride, warnings: 0 };
  }

  /** The RGB pixels of the whole image. Call `header` first. */
  pixels(bytes: Uint8Array, { width, height }: ImageHeader): Uint8Array {
    return this.#decoder.pixels(bytes, { x: 0, y: 0, width, height });
  }

  check(bytes: Uint8Array): number {
    this.#decoder.check(bytes);
    return 0;
  }

  close(): void {}
}
