import { OptionError } from '@shardtool/base';
import type { DevicePlan } from '@shardtool/reader';
import type { Device } from './device.js';
import {
  affine,
  BLOCK_THREADS,
  entryName,
  PARAMETER_OFFSETS,
  packParameters,
  ptxModule,
  VALUE_BYTES,
} from './kernel.js';

/** Copies bytes [n, height, width, 3] to the device and converts them to the values of a plan, on one stream. */
export class Converter {
  readonly #device: Device;
  readonly #stream: bigint;
  readonly #valueBytes: number;
  readonly #affine: ReturnType<typeof affine>;
  /** Null if bytes are not converted. */
  readonly #kernel: { readonly module: bigint; readonly entry: bigint } | null;
  /** The memory that bytes are copied to. All batches share it, because the stream processes them one after the other. */
  #incoming = { address: 0n, bytes: 0 };

  /** Throws {@link OptionError} for values that float32 cannot hold. */
  constructor(device: Device, plan: DevicePlan, stream: bigint) {
    const { dtype, layout, normalization } = plan;
    this.#device = device;
    this.#stream = stream;
    this.#valueBytes = VALUE_BYTES[dtype];
    this.#affine = affine(normalization.mean, normalization.std);
    if (![...this.#affine.scale, ...this.#affine.bias].every(Number.isFinite)) {
      throw new OptionError({}, 'mean / std and 1 / std must be within the range of float32: choose a larger std.');
    }
    const name = entryName(dtype, layout);
    if (name === null) this.#kernel = null;
    else {
      const module = device.loadModule(ptxModule(dtype, layout));
      this.#kernel = { module, entry: device.functionOf(module, name) };
    }
  }

  /** Bytes of allocated device memory. */
  get bytes(): number {
    return this.#incoming.bytes;
  }

  /** Size of the converted values of this number of bytes. */
  resultBytes(bytes: number): number {
    return bytes * this.#valueBytes;
  }

  /** Queues the copy of `bytes` page-locked bytes at `source`, and their conversion to `target`. */
  enqueue(source: bigint, bytes: number, images: number, target: bigint): void {
    const device = this.#device;
    if (this.#kernel === null) {
      device.copyToDevice(target, source, bytes, this.#stream);
      return;
    }
    this.#reserve(bytes);
    device.copyToDevice(this.#incoming.address, source, bytes, this.#stream);
    const plane = bytes / images / 3;
    const work = { source: this.#incoming.address, target, images, plane, ...this.#affine };
    const grid = { blocks: Math.ceil((images * plane) / BLOCK_THREADS), threads: BLOCK_THREADS };
    device.launch(this.#kernel.entry, grid, packParameters(work), PARAMETER_OFFSETS, this.#stream);
  }

  /** Frees the memory. All work of the stream must be finished. */
  free(): void {
    if (this.#incoming.bytes > 0) this.#device.free(this.#incoming.address);
    this.#incoming = { address: 0n, bytes: 0 };
    if (this.#kernel !== null) this.#device.unloadModule(this.#kernel.module);
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#incoming.bytes) return;
    if (this.#incoming.bytes > 0) {
      // The batch is longer than earlier ones. The stream must finish before its memory is replaced, which happens rarely.
      this.#device.synchronize(this.#stream);
      this.#device.free(this.#incoming.address);
      this.#incoming = { address: 0n, bytes: 0 };
    }
    this.#incoming = { address: this.#device.allocate(bytes), bytes };
  }
}
