import type { DecodedImage, SampleIdentity } from '#reader/decode/decoded';
import { createDecoder, type Decoder, type DecoderOptions } from '#reader/decode/decoder';
import { scratchBytesFor } from '#reader/decode/scratch-size';
import { compileTransform, type TransformInput } from '#reader/transform/transform';
import { valueBytes } from '#reader/transform/values';
import { MAX_PIXELS } from './codec-workbench.js';

const PAGE = 65_536;
const GUARD = Buffer.alloc(256, 0xa5);
/** Scratch memory for images of up to this many pixels. */
const PIXELS = 2_000_000;

export function sample(changes: Partial<SampleIdentity> = {}): SampleIdentity {
  return { epoch: 0, source: 0, number: 0, occurrence: 0, orientation: 1, ...changes };
}

/** A decoder whose target and scratch are between guard bytes. */
export class GuardedDecoder {
  readonly decoder: Decoder;
  readonly #memory: Uint8Array;
  readonly #target: number;
  readonly #targetBytes: number;
  readonly #ends: readonly number[];

  static async open(transform: TransformInput, options: Partial<DecoderOptions> = {}): Promise<GuardedDecoder> {
    const compiled = compileTransform(transform);
    const bytes = options.scratch?.bytes ?? scratchBytesFor({ transform: compiled }, PIXELS);
    const { width, height } = compiled.outputShape ?? { width: 0, height: 0 };
    const targetBytes = width * height * 3 * valueBytes(compiled.dtype);
    const target = PAGE + bytes + PAGE;
    const pages = Math.ceil((target + targetBytes) / PAGE) + 1;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const decoder = await createDecoder({
      memory,
      seeds: [7],
      maxPixels: MAX_PIXELS,
      applyExifOrientation: false,
      ...options,
      scratch: { offset: PAGE, bytes },
      transform: compiled,
    });
    return new GuardedDecoder(decoder, new Uint8Array(memory.buffer), { target, targetBytes, bytes });
  }

  private constructor(
    decoder: Decoder,
    memory: Uint8Array,
    { target, targetBytes, bytes }: { target: number; targetBytes: number; bytes: number },
  ) {
    this.decoder = decoder;
    this.#memory = memory;
    this.#target = target;
    this.#targetBytes = targetBytes;
    this.#ends = [PAGE - GUARD.length, PAGE + bytes, target - GUARD.length, target + targetBytes];
    for (const end of this.#ends) memory.set(GUARD, end);
  }

  /** The finished row. Throws if a byte outside it, or outside the scratch, has changed. */
  async decode(bytes: Uint8Array, identity = sample()): Promise<Uint8Array> {
    await this.decoder.decode(bytes, identity, this.#target);
    this.#checkGuards();
    return this.#memory.slice(this.#target, this.#target + this.#targetBytes);
  }

  async decodeToArray(bytes: Uint8Array, identity = sample()): Promise<DecodedImage> {
    const image = await this.decoder.decodeToArray(bytes, identity);
    this.#checkGuards();
    return image;
  }

  #checkGuards(): void {
    for (const end of this.#ends) {
      const guard = this.#memory.subarray(end, end + GUARD.length);
      if (Buffer.compare(guard, GUARD) !== 0) throw new Error(`A byte of the guard at ${end} has changed.`);
    }
  }
}
