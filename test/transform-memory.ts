import { Scratch } from '#reader/codec/scratch';
import { eraseValues } from '#reader/decode/erase-values';
import { inputOf, runPasses } from '#reader/decode/passes';
import { allocatePicture, runEffects } from '#reader/decode/run-effects';
import { EffectKernels } from '#reader/kernels/effects';
import { halfFloatTable } from '#reader/kernels/half-float';
import { ResizeKernel, scratchBytes } from '#reader/kernels/resize';
import type { Effect } from '#reader/transform/effects';
import { planSample } from '#reader/transform/plan';
import type { Random } from '#reader/transform/random';
import { compileTransform, type TransformInput } from '#reader/transform/transform';
import { valueBytes } from '#reader/transform/values';
import type { Picture } from './kernels-memory.js';

const GUARD_BYTES = 256;
const GUARD = 0xa5;
const PAGE = 65_536;

/** Applies effects and whole lists to given pixels, in memory with guard bytes around scratch and target. */
export class TransformBench {
  readonly #memory: WebAssembly.Memory;
  readonly #bytes: Uint8Array;
  readonly #kernelBytes: number;
  readonly #scratchEnd: number;
  readonly #targetAt: number;

  constructor(scratch = 24 << 20, target = 8 << 20) {
    this.#kernelBytes = scratchBytes({ sourceColumns: 4096, sourceRows: 4096, width: 1024, height: 20 });
    const kernelEnd = Math.ceil((PAGE + this.#kernelBytes) / PAGE) * PAGE;
    this.#scratchEnd = kernelEnd + scratch;
    this.#targetAt = this.#scratchEnd + PAGE;
    const pages = Math.ceil((this.#targetAt + target) / PAGE) + 1;
    this.#memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    this.#bytes = new Uint8Array(this.#memory.buffer);
  }

  /** The result of the effects for a picture. */
  effects(picture: Picture, effects: readonly Effect[]): Picture {
    const scratch = this.#scratch();
    const start = allocatePicture(scratch, picture);
    this.#bytes.set(picture.pixels, start.address);
    const { address, width, height } = runEffects(start, effects, {
      effects: new EffectKernels(this.#memory),
      scratch,
    });
    this.#checkGuards(0);
    return { width, height, pixels: this.#bytes.slice(address, address + width * height * 3) };
  }

  /** The bytes of the finished row of a list for a picture. */
  list(picture: Picture, list: TransformInput, random: Random): { width: number; height: number; bytes: Uint8Array } {
    const transform = compileTransform(list);
    const scratch = this.#scratch();
    const start = allocatePicture(scratch, picture);
    this.#bytes.set(picture.pixels, start.address);
    const plan = planSample(transform, picture.width, picture.height, random);
    const { x, y } = inputOf(plan.passes[0]!);
    const stride = picture.width * 3;
    const effects = new EffectKernels(this.#memory);
    const tools = {
      kernel: new ResizeKernel(this.#memory, { offset: PAGE, bytes: this.#kernelBytes }),
      scratch,
      clock: { isOn: false, ms: 0 },
      effects,
      halfFloats: transform.dtype === 'float16' ? halfFloatTable(transform.normalization!) : null,
      wide: null,
    };
    const size = plan.width * plan.height * 3 * valueBytes(transform.dtype);
    this.#bytes.fill(GUARD, this.#targetAt - GUARD_BYTES, this.#targetAt);
    this.#bytes.fill(GUARD, this.#targetAt + size, this.#targetAt + size + GUARD_BYTES);
    runPasses(plan.passes, { offset: start.address + y * stride + x * 3, stride }, transform, tools, this.#targetAt);
    eraseValues(plan.erased, plan, transform, { effects, scratch }, this.#targetAt);
    this.#checkGuards(size);
    return {
      width: plan.width,
      height: plan.height,
      bytes: this.#bytes.slice(this.#targetAt, this.#targetAt + size),
    };
  }

  #scratch(): Scratch {
    const offset = Math.ceil((PAGE + this.#kernelBytes) / PAGE) * PAGE;
    this.#bytes.fill(GUARD, this.#scratchEnd, this.#scratchEnd + GUARD_BYTES);
    this.#bytes.fill(GUARD, offset - GUARD_BYTES, offset);
    return new Scratch(this.#memory, { offset, bytes: this.#scratchEnd - offset });
  }

  #checkGuards(targetBytes: number): void {
    const ends = [
      this.#scratchEnd,
      ...(targetBytes > 0 ? [this.#targetAt - GUARD_BYTES, this.#targetAt + targetBytes] : []),
    ];
    for (const end of ends) {
      if (this.#bytes.subarray(end, end + GUARD_BYTES).some((byte) => byte !== GUARD)) {
        throw new Error(`A byte of the guard at ${end} has changed.`);
      }
    }
  }
}
