import { OptionError, optionName, sentence } from '@shardtool/base';
import { type CallName, type Driver, loadDriver } from './driver.js';
import { NoCudaError } from './errors.js';

/** `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`. */
const CAPABILITY_MAJOR = 75;
const CAPABILITY_MINOR = 76;
/** `CU_STREAM_NON_BLOCKING`: the stream and the default stream do not wait for each other. */
const NON_BLOCKING = 1;
/** `CU_EVENT_DEFAULT` and `CU_EVENT_DISABLE_TIMING` */
const TIMING = 0;
const NO_TIMING = 2;
const NAME_BYTES = 256;

/** Page-locked memory that the driver allocated. */
export interface PinnedMemory {
  readonly address: bigint;
  readonly bytes: Uint8Array;
}

/**
 * One device, with its primary context, which it shares with other CUDA libraries of the process. The context is current on this
 * thread only during a call, so the current context of other libraries does not change.
 */
export class Device {
  readonly ordinal: number;
  readonly name: string;
  readonly computeCapability: string;
  readonly #driver: Driver;
  readonly #context: bigint;

  /** Throws {@link NoCudaError} if there is no driver or device, and {@link OptionError} if no device has this number. */
  static async open(ordinal: number): Promise<Device> {
    const driver = await loadDriver();
    const devices = number(driver, 'cuDeviceGetCount');
    if (devices === 0) {
      throw new NoCudaError(
        {},
        sentence`The CUDA driver found no device on this machine: remove the option ${optionName('device')}, or check CUDA_VISIBLE_DEVICES.`,
      );
    }
    if (ordinal >= devices) {
      const last = devices === 1 ? 'only cuda:0' : `cuda:0 to cuda:${devices - 1}`;
      throw new OptionError({}, `There is no device cuda:${ordinal}; this machine has ${last}.`);
    }
    return new Device(driver, ordinal);
  }

  private constructor(driver: Driver, ordinal: number) {
    const device = number(driver, 'cuDeviceGet', ordinal);
    const name = new Uint8Array(NAME_BYTES);
    driver.call('cuDeviceGetName', name, NAME_BYTES, device);
    const capability = [CAPABILITY_MAJOR, CAPABILITY_MINOR].map((attribute) =>
      number(driver, 'cuDeviceGetAttribute', attribute, device),
    );
    this.ordinal = device;
    this.name = new TextDecoder().decode(name.subarray(0, name.indexOf(0)));
    this.computeCapability = capability.join('.');
    this.#driver = driver;
    this.#context = word(driver, 'cuDevicePrimaryCtxRetain', device);
  }

  /** Releases the context. Memory, streams and events must be released before. */
  close(): void {
    this.#driver.call('cuDevicePrimaryCtxRelease_v2', this.ordinal);
  }

  allocate(bytes: number): bigint {
    return this.#within(() => word(this.#driver, 'cuMemAlloc_v2', bytes));
  }

  free(address: bigint): void {
    this.#call('cuMemFree_v2', address);
  }

  /** Bytes of free device memory. */
  get freeBytes(): number {
    const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)];
    this.#call('cuMemGetInfo_v2', free, total);
    return Number(free[0]);
  }

  /** Page-locks memory of this process, so that it can be copied asynchronously. The caller keeps the array. */
  register(memory: Uint8Array): bigint {
    const address = this.#driver.address(memory);
    this.#call('cuMemHostRegister_v2', address, memory.byteLength, 0);
    return address;
  }

  unregister(address: bigint): void {
    this.#call('cuMemHostUnregister', address);
  }

  allocatePinned(bytes: number): PinnedMemory {
    const address = this.#within(() => word(this.#driver, 'cuMemHostAlloc', bytes, 0));
    return { address, bytes: this.#driver.view(address, bytes) };
  }

  freePinned({ address }: PinnedMemory): void {
    this.#call('cuMemFreeHost', address);
  }

  /** The address of an array's first byte. */
  address(array: Uint8Array): bigint {
    return this.#driver.address(array);
  }

  /** Queues a copy from page-locked memory on the stream. */
  copyToDevice(target: bigint, source: bigint, bytes: number, stream: bigint): void {
    this.#call('cuMemcpyHtoDAsync_v2', target, source, bytes, stream);
  }

  /** Waits for the work of the default stream, and copies, through page-locked memory of the driver. */
  copyFromHost(target: bigint, source: Uint8Array): void {
    if (source.byteLength > 0) this.#call('cuMemcpyHtoD_v2', target, source, source.byteLength);
  }

  /** Waits for the work of the default stream, and copies. */
  copyToHost(source: bigint, bytes: number): Uint8Array {
    const target = new Uint8Array(bytes);
    if (bytes > 0) this.#call('cuMemcpyDtoH_v2', target, source, bytes);
    return target;
  }

  createStream(): bigint {
    return this.#within(() => word(this.#driver, 'cuStreamCreate', NON_BLOCKING));
  }

  destroyStream(stream: bigint): void {
    this.#call('cuStreamDestroy_v2', stream);
  }

  /** Blocks this thread until the work of the stream is finished. */
  synchronize(stream: bigint): void {
    this.#call('cuStreamSynchronize', stream);
  }

  createEvent({ isTimed = false } = {}): bigint {
    return this.#within(() => word(this.#driver, 'cuEventCreate', isTimed ? TIMING : NO_TIMING));
  }

  destroyEvent(event: bigint): void {
    this.#call('cuEventDestroy_v2', event);
  }

  /** Sets the event to the work that is queued on the stream now. */
  record(event: bigint, stream: bigint): void {
    this.#call('cuEventRecord', event, stream);
  }

  /** Makes later work on the stream wait for the event. */
  wait(stream: bigint, event: bigint): void {
    this.#call('cuStreamWaitEvent', stream, event, 0);
  }

  isDone(event: bigint): boolean {
    return this.#within(() => this.#driver.query(event));
  }

  /** Milliseconds between two timed events, which must both have happened. */
  milliseconds(from: bigint, to: bigint): number {
    const result = new Float32Array(1);
    this.#call('cuEventElapsedTime', result, from, to);
    return result[0]!;
  }

  loadModule(ptx: string): bigint {
    return this.#within(() => word(this.#driver, 'cuModuleLoadData', ptx));
  }

  unloadModule(module: bigint): void {
    this.#call('cuModuleUnload', module);
  }

  functionOf(module: bigint, name: string): bigint {
    return this.#within(() => word(this.#driver, 'cuModuleGetFunction', module, name));
  }

  /** Launches a kernel in one dimension. `offsets` has the offset of each parameter in `parameters`. */
  launch(
    kernel: bigint,
    grid: { readonly blocks: number; readonly threads: number },
    parameters: DataView,
    offsets: readonly number[],
    stream: bigint,
  ): void {
    // The pointers, followed by the parameters that they point to, in one array, which stays alive during the call.
    const words = new BigUint64Array(offsets.length + Math.ceil(parameters.byteLength / 8));
    const values = new Uint8Array(words.buffer, 8 * offsets.length);
    values.set(new Uint8Array(parameters.buffer, parameters.byteOffset, parameters.byteLength));
    const base = this.#driver.address(values);
    for (const [i, offset] of offsets.entries()) words[i] = base + BigInt(offset);
    const { blocks, threads } = grid;
    this.#call('cuLaunchKernel', kernel, blocks, 1, 1, threads, 1, 1, 0, stream, words, null);
  }

  #call(...call: Parameters<Driver['call']>): void {
    this.#within(() => this.#driver.call(...call));
  }

  #within<Result>(run: () => Result): Result {
    this.#driver.call('cuCtxPushCurrent_v2', this.#context);
    try {
      return run();
    } finally {
      this.#driver.call('cuCtxPopCurrent_v2', new BigUint64Array(1));
    }
  }
}

type Rest<Parameters extends readonly unknown[]> = Parameters extends readonly [unknown, ...infer Others]
  ? Others
  : never;

/** Calls a function that writes its result, an int, to its first parameter. */
function number(driver: Driver, name: CallName, ...args: Rest<Parameters<Driver['call']>>): number {
  const result = new Int32Array(1);
  driver.call(name, result, ...args);
  return result[0]!;
}

/** Like {@link number}, for a handle or an address. */
function word(driver: Driver, name: CallName, ...args: Rest<Parameters<Driver['call']>>): bigint {
  const result = new BigUint64Array(1);
  driver.call(name, result, ...args);
  return result[0]!;
}
