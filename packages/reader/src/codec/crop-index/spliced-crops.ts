import type { KernelMemory } from '../../kernels/kernel-memory.js';
import type { ImageHeader, Pixels, Rect, Reduction } from '../codec.js';
import type { Scratch } from '../scratch.js';
import type { TurboJpegCodec } from '../turbojpeg.js';
import { isWorthSplicing } from './pays.js';
import { JpegSplicer } from './splice.js';

/** Decodes crops of JPEGs by their own data alone, where a crop index leads to them and that pays. Belongs to one worker. */
export class SplicedCrops {
  readonly #codec: TurboJpegCodec;
  readonly #makeSplicer: () => JpegSplicer;
  /** Its kernel is compiled when a crop index is first of use: most workers never meet one. */
  #splicer: JpegSplicer | null = null;
  #count = 0;

  /** `state` is the address of CROP_STATE_BYTES zeros. */
  constructor(codec: TurboJpegCodec, memory: KernelMemory, state: number) {
    this.#codec = codec;
    this.#makeSplicer = () => new JpegSplicer(memory, state);
  }

  /**
   * The pixels of `crop`, those of a region decode bit for bit. Null where that would cost more, or the index does not lead to
   * them: then the codec and the scratch are as they were.
   */
  decode(
    bytes: Uint8Array,
    header: ImageHeader,
    cropIndex: Uint8Array,
    crop: Rect,
    reduction: Reduction,
    scratch: Scratch,
  ): Pixels | null {
    if (!isWorthSplicing(header, crop, reduction)) return null;
    this.#splicer ??= this.#makeSplicer();
    const small = this.#splicer.splice(bytes, cropIndex, crop, reduction, scratch);
    const pixels = small === null ? null : this.#codec.decodePart(small, crop, reduction, scratch);
    if (pixels !== null) {
      this.#count++;
      return pixels;
    }
    scratch.reset();
    this.#codec.header(bytes);
    return null;
  }

  /** How many were decoded so, since the last call. */
  take(): number {
    const count = this.#count;
    this.#count = 0;
    return count;
  }
}
