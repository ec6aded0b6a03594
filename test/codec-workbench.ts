import { readFileSync } from 'node:fs';
import type { ImageCodec, Rect, Reduction } from '#reader/codec/codec';
import { Scratch } from '#reader/codec/scratch';
import { type OpenCodecs, openCodecs, openImage } from '#reader/codec/select';

/** Decoded RGB, without gaps between rows. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
  readonly warnings: number;
}

export const MAX_PIXELS = 178_956_970;

const PAGE = 65_536;
const SCRATCH_PAGES = 512;
const GUARD = Buffer.alloc(1024, 0xa5);

/** A file below test/fixtures, in shared memory as in the readers. */
export function fixture(name: string): Uint8Array {
  const bytes = readFileSync(new URL(`./fixtures/${name}`, import.meta.url));
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return shared;
}

/** The codecs of SHARDTOOL_CODEC with scratch memory between guard bytes. */
export class Workbench {
  readonly codecs: OpenCodecs;
  readonly #scratch: Scratch;

  static async open(): Promise<Workbench> {
    return new Workbench(await openCodecs({ maxPixels: MAX_PIXELS }));
  }

  private constructor(codecs: OpenCodecs) {
    const pages = SCRATCH_PAGES + 2;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    this.codecs = codecs;
    this.#scratch = new Scratch(memory, { offset: PAGE, bytes: SCRATCH_PAGES * PAGE });
    for (const guard of this.#guards()) guard.set(GUARD);
  }

  /** Decodes a part of an image, all of it by default. Throws if a byte outside the scratch has changed. */
  async decode(bytes: Uint8Array, crop?: Rect, reduction: Reduction = 1): Promise<Picture> {
    const { codec, header } = openImage(this.codecs, bytes, MAX_PIXELS);
    return this.decodeWith(codec, bytes, crop ?? wholeOf(header, reduction), reduction);
  }

  /** Whether the image can be decoded at a reduced size. */
  isReducible(bytes: Uint8Array): boolean {
    return openImage(this.codecs, bytes, MAX_PIXELS).header.reducible;
  }

  async decodeWith(codec: ImageCodec, bytes: Uint8Array, crop: Rect, reduction: Reduction): Promise<Picture> {
    const { width, height } = crop;
    this.#scratch.reset();
    try {
      const { offset, stride, warnings } = await codec.decodeRegion(bytes, crop, reduction, this.#scratch);
      const pixels = new Uint8Array(width * height * 3);
      for (let y = 0; y < height; y++) {
        const row = offset + y * stride;
        pixels.set(this.#scratch.memory.subarray(row, row + width * 3), y * width * 3);
      }
      return { width, height, pixels, warnings };
    } finally {
      this.#checkGuards();
    }
  }

  #checkGuards(): void {
    const changed = this.#guards().some((guard) => Buffer.compare(guard, GUARD) !== 0);
    if (changed) throw new Error('A byte next to the scratch memory has changed.');
  }

  #guards(): Uint8Array[] {
    const end = (SCRATCH_PAGES + 1) * PAGE;
    return [PAGE - GUARD.length, end].map((at) => this.#scratch.memory.subarray(at, at + GUARD.length));
  }
}

export function wholeOf({ width, height }: { width: number; height: number }, reduction: Reduction = 1): Rect {
  return { x: 0, y: 0, width: Math.ceil(width / reduction), height: Math.ceil(height / reduction) };
}

/** A part of a picture. */
export function cut(picture: Picture, { x, y, width, height }: Rect): Uint8Array {
  const pixels = new Uint8Array(width * height * 3);
  for (let row = 0; row < height; row++) {
    const from = ((y + row) * picture.width + x) * 3;
    pixels.set(picture.pixels.subarray(from, from + width * 3), row * width * 3);
  }
  return pixels;
}

/** The integers below n, in an order that depends on `seed`. */
export function dice(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** The largest and the mean difference of two byte arrays. */
export function difference(a: Uint8Array, b: Uint8Array): { largest: number; mean: number } {
  if (a.length !== b.length) throw new Error(`${a.length} bytes compared with ${b.length}.`);
  let largest = 0;
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(a[i]! - b[i]!);
    largest = Math.max(largest, difference);
    sum += difference;
  }
  return { largest, mean: sum / Math.max(1, a.length) };
}
