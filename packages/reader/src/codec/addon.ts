import { createRequire } from 'node:module';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from './codec.js';
import { jpegStructure, refuseBomb } from './jpeg-structure.js';
import type { Scratch } from './scratch.js';
import type { SharpCodec } from './sharp.js';
import { turboJpegFiles } from './turbojpeg-library.js';

/** What is used of the addon's functions. */
interface Addon {
  readonly FORMAT_RGB: number;
  decompressSync(source: Buffer, target: Buffer, options: { readonly format: number }): unknown;
}

/** Loads the addon. Throws where there is none for this platform, or where it cannot be loaded. */
export function loadAddon(): Addon {
  const [path] = turboJpegFiles('node-napi-v7.node');
  if (path === undefined) throw new Error(`no addon comes for ${process.platform}-${process.arch}`);
  return createRequire(import.meta.url)(path) as Addon;
}

/**
 * JPEGs by @julusian/jpeg-turbo's own functions, where TurboJPEG itself cannot be loaded: always all of the image, with
 * libjpeg-turbo's faster and less exact inverse DCT (8 levels from the others at most). The functions do not say what was
 * wrong, so whatever they refuse goes to sharp.
 */
export class AddonCodec implements ImageCodec {
  readonly name = 'addon';
  readonly #addon: Addon;
  readonly #sharp: SharpCodec;
  #header: ImageHeader = { width: 0, height: 0, reducible: false };

  constructor(addon: Addon, sharp: SharpCodec) {
    this.#addon = addon;
    this.#sharp = sharp;
  }

  header(bytes: Uint8Array): ImageHeader {
    this.#header = this.#sharp.header(bytes);
    return this.#header;
  }

  decodeRegion(bytes: Uint8Array, crop: Rect, reduction: Reduction, scratch: Scratch): Pixels | Promise<Pixels> {
    const stride = this.#header.width * 3;
    const size = stride * this.#header.height;
    // sharp decodes to memory of its own, and needs room for the crop alone.
    if (size <= scratch.available) {
      const offset = scratch.allocate(size);
      const target = Buffer.from(scratch.memory.buffer, offset, size);
      if (this.#decompress(bytes, target))
        return { offset: offset + crop.y * stride + crop.x * 3, stride, warnings: 0 };
      scratch.reset();
    }
    return this.#sharp.decodeRegion(bytes, crop, reduction, scratch);
  }

  check(bytes: Uint8Array): number | Promise<number> {
    const { width, height } = this.#header;
    return this.#decompress(bytes, Buffer.allocUnsafe(width * height * 3)) ? 0 : this.#sharp.check(bytes);
  }

  close(): void {}

  /** False where the addon had anything to complain about. */
  #decompress(bytes: Uint8Array, target: Buffer): boolean {
    refuseBomb(jpegStructure(bytes));
    try {
      // The bytes may lie in shared memory, of which Buffer.from makes a view.
      const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      this.#addon.decompressSync(source, target, { format: this.#addon.FORMAT_RGB });
      return true;
    } catch {
      return false;
    }
  }
}
