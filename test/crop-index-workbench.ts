/// <reference path="../packages/reader/src/webassembly.d.ts" />
import fc from 'fast-check';
import type { Rect, Reduction } from '#reader/codec/codec';
import { CropIndexMaker } from '#reader/codec/crop-index/make';
import { JpegSplicer } from '#reader/codec/crop-index/splice';
import type { TurboJpegCodec } from '#reader/codec/jpeg/turbojpeg';
import { Scratch } from '#reader/codec/scratch';
import { openCodecs } from '#reader/codec/select';
import { type JpegOptions, makeJpeg, type Samples } from './jpeg-maker.js';

const PAGE = 65_536;
const PAGES = 2048;

/** An image with any sampling, tables and restart interval that a baseline JPEG can have. */
export interface DrawnImage {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly what: string;
}

/** Draws images, smooth, noisy, flat and with hard edges. */
export function images(longest: number): fc.Arbitrary<DrawnImage> {
  return fc
    .record({
      width: fc.integer({ min: 1, max: longest }),
      height: fc.integer({ min: 1, max: longest }),
      kind: fc.nat(3),
      seed: fc.nat(0xffff),
      cmyk: fc.nat(9).map((n) => n === 0),
      quality: fc.integer({ min: 1, max: 100 }),
      subsampling: fc.nat(6),
      optimize: fc.boolean(),
      restart: fc.oneof(
        { weight: 3, arbitrary: fc.constant({}) },
        fc.record({ restartRows: fc.integer({ min: 1, max: 3 }) }),
        fc.record({ restartBlocks: fc.integer({ min: 1, max: 40 }) }),
      ),
    })
    .map(({ width, height, kind, seed, cmyk, quality, subsampling, optimize, restart }) => {
      const samples = draw(width, height, cmyk ? 4 : 3, kind, seed);
      // CMYK has no gray.
      const options: JpegOptions = {
        quality,
        subsampling: cmyk && subsampling === 3 ? 0 : subsampling,
        optimize,
        ...restart,
      };
      return { bytes: makeJpeg(samples, options), width, height, what: JSON.stringify({ cmyk, kind, ...options }) };
    });
}

export function draw(width: number, height: number, channels: 3 | 4, kind: number, seed: number): Samples {
  const values = new Uint8Array(width * height * channels);
  const [a, b] = [((seed & 255) / 255) * 0.2, ((seed >> 8) / 255) * 0.2];
  let noise = seed + 1;
  let at = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let c = 0; c < channels; c++) {
        noise = (Math.imul(noise, 1_103_515_245) + 12_345) >>> 0;
        if (kind === 0) values[at++] = 128 + 100 * Math.sin(x * a + c) * Math.cos(y * b);
        else if (kind === 1) values[at++] = noise >>> 24;
        else if (kind === 2) values[at++] = 37 * (c + 1);
        else values[at++] = ((x >> 3) + (y >> 4)) & 1 ? 255 : 0;
      }
    }
  }
  return { width, height, channels, values };
}

/** Uniformly distributed, unlike fc.double. */
const fraction = fc.nat(1000).map((thousandths) => thousandths / 1000);

/** A part of an image, and its reduction: as fractions, for any image. Many are small, and begin on a block. */
export const parts = fc.record({
  x: fraction,
  y: fraction,
  width: fraction,
  height: fraction,
  isSmall: fc.boolean(),
  onBlock: fc.boolean(),
  reduction: fc.constantFrom<Reduction>(1, 1, 2, 4, 8),
});
type Part = typeof parts extends fc.Arbitrary<infer T> ? T : never;

export function cropOf(image: { width: number; height: number }, part: Part): Rect {
  const along = (length: number, at: number, share: number): [number, number] => {
    const all = Math.ceil(length / part.reduction);
    const size = Math.max(1, Math.round((part.isSmall ? Math.min(all, 40) : all) * share));
    const first = Math.round((all - size) * at);
    return [part.onBlock ? first - (first % (16 / part.reduction)) : first, size];
  };
  const [x, width] = along(image.width, part.x, part.width);
  const [y, height] = along(image.height, part.y, part.height);
  return { x, y, width, height };
}

/** Creates indexes, and decodes crops with and without them. */
export class CropBench {
  readonly maker = new CropIndexMaker();
  readonly codec: TurboJpegCodec;
  readonly #splicer: JpegSplicer;
  readonly #scratch: Scratch;

  static async open(): Promise<CropBench> {
    const { jpeg } = await openCodecs({ maxPixels: 1e9, codec: 'turbojpeg' });
    return new CropBench(jpeg as TurboJpegCodec);
  }

  private constructor(codec: TurboJpegCodec) {
    const memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true });
    this.codec = codec;
    this.#splicer = new JpegSplicer(memory, 0);
    this.#scratch = new Scratch(memory, { offset: PAGE, bytes: (PAGES - 1) * PAGE });
  }

  /** RGB of a crop that is decoded without an index. */
  async today(bytes: Uint8Array, crop: Rect, reduction: Reduction): Promise<Uint8Array> {
    this.#scratch.reset();
    this.codec.header(bytes);
    return this.#rows(await this.codec.decodeRegion(bytes, crop, reduction, this.#scratch), crop);
  }

  /** The same with an index; null if that is not possible. */
  spliced(bytes: Uint8Array, index: Uint8Array, crop: Rect, reduction: Reduction): Uint8Array | null {
    this.#scratch.reset();
    this.codec.header(bytes);
    const small = this.#splicer.splice(bytes, index, crop, reduction, this.#scratch);
    const pixels = small === null ? null : this.codec.decodePart(small, crop, reduction, this.#scratch);
    return pixels === null ? null : this.#rows(pixels, crop);
  }

  #rows({ offset, stride }: { offset: number; stride: number }, { width, height }: Rect): Uint8Array {
    const rows = new Uint8Array(width * height * 3);
    for (let y = 0; y < height; y++) {
      const row = offset + y * stride;
      rows.set(this.#scratch.memory.subarray(row, row + width * 3), y * width * 3);
    }
    return rows;
  }
}

/** Compares crops with an index to the whole image: 8 crops for each of `runs` images of up to `longest` pixels a side. Returns their number. */
export async function checkPixels(bench: CropBench, runs: number, longest: number): Promise<number> {
  let crops = 0;
  await fc.assert(
    fc.asyncProperty(images(longest), fc.array(parts, { minLength: 8, maxLength: 8 }), async (image, drawn) => {
      const index = bench.maker.make(image.bytes);
      if (typeof index === 'number') throw new Error(`${image.what}: ${index}`);
      const packed = index.slice();
      for (const part of drawn) {
        crops++;
        const crop = cropOf(image, part);
        const pixels = bench.spliced(image.bytes, packed, crop, part.reduction);
        const wanted = await bench.today(image.bytes, crop, part.reduction);
        if (pixels === null || Buffer.compare(pixels, wanted) !== 0) {
          const where = `${image.what} of ${image.width}x${image.height}, ${JSON.stringify(crop)} at 1/${part.reduction}`;
          throw new Error(`${where}: ${pixels === null ? 'no pixels' : 'other pixels'}`);
        }
      }
    }),
    { numRuns: runs },
  );
  return crops;
}
