import type { KernelMemory } from '../../kernels/kernel-memory.js';
import type { ImageHeader, Pixels, Rect, Reduction } from '../codec.js';
import type { TurboJpegCodec } from '../jpeg/turbojpeg.js';
import type { Scratch } from '../scratch.js';
import { JpegSplicer } from './splice.js';
import { isWorthSplicing } from './worth-splicing.js';

/** Decodes only the data of a crop of a JPEG, if a crop index locates them and this is faster. Belongs to one worker. */
export class SplicedCrops {
  readonly #codec: TurboJpegCodec;
  readonly #makeSplicer: () => JpegSplicer;
  /** Created on first use, because that compiles a kernel and most workers never see a crop index. */
  #splicer: JpegSplicer | null = null;
  #count = 0;

  /** `state` is the address of CROP_STATE_BYTES zero bytes. */
  constructor(codec: TurboJpegCodec, memory: KernelMemory, state: number) {
    this.#codec = codec;
    this.#makeSplicer = () => new JpegSplicer(memory, state);
  }

  /**
   * The pixels of `crop`, bit for bit those of a region decode. Null if this would be slower or the index cannot be used; then the
   * codec and scratch memory are unchanged.
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

  /** Number of images decoded in this way since the last call. */
  take(): number {
    const count = this.#count;
    this.#count = 0;
    return count;
  }
}
