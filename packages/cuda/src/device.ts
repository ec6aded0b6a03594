import { OptionError, optionName, sentence } from '@shardtool/base';
import { type CallName, type Driver, loadDriver } from './driver.js';
import { NoCudaError } from './errors.js';

/** `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`. */
const CAPABILITY_MAJOR = 75;
const CAPABILITY_MINOR = 76;
/** `CU_STREAM_NON_BLOCKING`: it does not wait for the default stream, nor that for it. */
const NON_BLOCKING = 1;
/** `CU_EVENT_DEFAULT` and `CU_EVENT_DISABLE_TIMING` */
const TIMING = 0;
const NO_TIMING = 2;
const NAME_BYTES = 256;

/** Page-locked memory that the driver gave. */
export interface PinnedMemory {
  readonly address: bigint;
  readonly bytes: Uint8Array;
}

/**
 * One device, by its primary context, which other CUDA libraries of the process share. The context is current on this thread
 * only within a call, so that theirs stays what it was.
 */
export class Device {
  readonly ordinal: number;
  readonly name: string;
  readonly computeCapability: string;
  readonly #driver: Driver;
  readonly #context: bigint;

  /** Throws {@link NoCudaError} without a driver or device, {@link OptionError} for a number that no device has. */
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

  /** Memory, streams and events have to be released first. */
  close(): void {
    this.#driver.call('cuDevicePrimaryCtxRelease_v2', this.ordinal);
  }

  allocate(bytes: number): bigint {
    return this.#within(() => word(this.#driver, 'cuMemAlloc_v2', bytes));
  }

  free(address: bigint): void {
    this.#call('cuMemFree_v2', address);
  }

  /** Bytes of device memory that no process has. */
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

  /** A copy out of page-locked memory, behind what was given to the stream before. */
  copyToDevice(target: bigint, source: bigint, bytes: number, stream: bigint): void {
    this.#call('cuMemcpyHtoDAsync_v2', target, source, bytes, stream);
  }

  /** Waits for the work of the default stream, and copies; the driver goes through page-locked memory of its own. */
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

  /** Blocks this thread until the stream's work is done. */
  synchronize(stream: bigint): void {
    this.#call('cuStreamSynchronize', stream);
  }

  createEvent({ isTimed = false } = {}): bigint {
    return this.#within(() => word(this.#driver, 'cuEventCreate', isTimed ? TIMING : NO_TIMING));
  }

  destroyEvent(event: bigint): void {
    this.#call('cuEventDestroy_v2', event);
  }

  /** The event is what the stream has been given so far. */
  record(event: bigint, stream: bigint): void {
    this.#call('cuEventRecord', event, stream);
  }

  /** Later work on the stream waits for the event. */
  wait(stream: bigint, event: bigint): void {
    this.#call('cuStreamWaitEvent', stream, event, 0);
  }

  isDone(event: bigint): boolean {
    return this.#within(() => this.#driver.query(event));
  }

  /** From one timed event to another; both are done. */
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

  /** A launch in one dimension. `offsets` are those of the parameters in `parameters`. */
  launch(
    kernel: bigint,
    grid: { readonly blocks: number; readonly threads: number },
    parameters: DataView,
    offsets: readonly number[],
    stream: bigint,
  ): void {
    // Pointers and behind them what they point to, in one array, which lives as long as the call.
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

/** Calls a function whose first parameter takes its result: an int. */
function number(driver: Driver, name: CallName, ...args: Rest<Parameters<Driver['call']>>): number {
  const result = new Int32Array(1);
  driver.call(name, result, ...args);
  return result[0]!;
}

/** The same for a handle or an address. */
function word(driver: Driver, name: CallName, ...args: Rest<Parameters<Driver['call']>>): bigint {
  const result = new BigUint64Array(1);
  driver.call(name, result, ...args);
  return result[0]!;
}
