import { nativeCalls, optionName, type Sentence, sentence } from '@shardtool/base';
import type { LibraryHandle } from 'koffi';
import { CudaError, NoCudaError } from './errors.js';

/** `CUresult` values with a special meaning. All others are failures. */
const SUCCESS = 0;
const OUT_OF_MEMORY = 2;
const NO_BINARY_FOR_GPU = 209;
const NOT_READY = 600;

/** A handle or an address. */
const WORD = 'uint64_t';

/** Types of results and parameters. The driver writes through a `void*` into an array of the caller. */
const FUNCTIONS = {
  cuInit: ['uint'],
  cuDeviceGetCount: ['void*'],
  cuDeviceGet: ['void*', 'int'],
  cuDeviceGetName: ['void*', 'int', 'int'],
  cuDeviceGetAttribute: ['void*', 'int', 'int'],
  cuDevicePrimaryCtxRetain: ['void*', 'int'],
  cuDevicePrimaryCtxRelease_v2: ['int'],
  cuCtxPushCurrent_v2: [WORD],
  cuCtxPopCurrent_v2: ['void*'],
  cuMemHostRegister_v2: [WORD, 'size_t', 'uint'],
  cuMemHostUnregister: [WORD],
  cuMemHostAlloc: ['void*', 'size_t', 'uint'],
  cuMemFreeHost: [WORD],
  cuMemAlloc_v2: ['void*', 'size_t'],
  cuMemFree_v2: [WORD],
  cuMemGetInfo_v2: ['void*', 'void*'],
  cuMemcpyHtoD_v2: [WORD, 'void*', 'size_t'],
  cuMemcpyHtoDAsync_v2: [WORD, WORD, 'size_t', WORD],
  cuMemcpyDtoH_v2: ['void*', WORD, 'size_t'],
  cuStreamCreate: ['void*', 'uint'],
  cuStreamDestroy_v2: [WORD],
  cuStreamSynchronize: [WORD],
  cuStreamWaitEvent: [WORD, WORD, 'uint'],
  cuEventCreate: ['void*', 'uint'],
  cuEventDestroy_v2: [WORD],
  cuEventRecord: [WORD, WORD],
  cuEventQuery: [WORD],
  cuEventElapsedTime: ['void*', WORD, WORD],
  cuModuleLoadData: ['void*', 'const char*'],
  cuModuleUnload: [WORD],
  cuModuleGetFunction: ['void*', WORD, 'const char*'],
  cuLaunchKernel: [WORD, 'uint', 'uint', 'uint', 'uint', 'uint', 'uint', 'uint', WORD, 'void*', 'void*'],
} as const satisfies Record<string, readonly string[]>;

export type CallName = keyof typeof FUNCTIONS;
type Argument = number | bigint | string | ArrayBufferView | null;

/** The CUDA driver. The result of every call is checked. */
export interface Driver {
  /** Calls a function. If it fails, throws {@link CudaError} with its name and CUDA's description of the error. */
  call(name: CallName, ...args: Argument[]): void;
  /** Whether the work before an event is finished. Throws like {@link call} if that work failed. */
  query(event: bigint): boolean;
  /** The address of an array's first byte. The caller keeps the array. */
  address(array: ArrayBufferView): bigint;
  /** A view of memory at an address outside of JavaScript's memory. */
  view(address: bigint, bytes: number): Uint8Array;
}

let loading: Promise<Driver> | null = null;

/** Loads the driver and initializes it, once per process. Throws {@link NoCudaError} if there is no driver. */
export function loadDriver(): Promise<Driver> {
  loading ??= load().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

async function load(): Promise<Driver> {
  const koffi = nativeCalls<typeof import('koffi').default>();
  const path = process.env.SHARDTOOL_CUDA_DRIVER ?? (process.platform === 'win32' ? 'nvcuda.dll' : 'libcuda.so.1');
  const library = open(koffi, path);
  const functions = bind(library, path);
  const errorText = textOf(koffi, library);
  const check = (name: CallName, code: number): void => {
    if (code !== SUCCESS) throw new CudaError({ call: name, result: code, ...errorText(code) }, remedyOf(code));
  };
  const driver: Driver = {
    call: (name, ...args) => check(name, functions[name](...args)),
    query(event) {
      const code = functions.cuEventQuery(event);
      if (code === NOT_READY) return false;
      check('cuEventQuery', code);
      return true;
    },
    address: (array) => BigInt(koffi.address(array)),
    view: (address, bytes) => new Uint8Array(koffi.view(address, bytes)),
  };
  start(driver);
  return driver;
}

/** Initializes the driver. This fails if there is no device, or if the kernel module has another version. */
function start(driver: Driver): void {
  try {
    driver.call('cuInit', 0);
  } catch (cause) {
    const why = (cause as Error).message.replace(/\.$/, '');
    throw new NoCudaError(
      {},
      sentence`The CUDA driver does not start (${why}): run nvidia-smi to check it, or remove the option ${optionName('device')}.`,
      { cause },
    );
  }
}

function open(koffi: typeof import('koffi').default, path: string): LibraryHandle {
  try {
    return koffi.load(path);
  } catch (cause) {
    throw noDriver(`${path}: ${(cause as Error).message}`, cause);
  }
}

type Functions = Readonly<Record<CallName, (...args: Argument[]) => number>>;

function bind(library: LibraryHandle, path: string): Functions {
  try {
    const bound = Object.entries(FUNCTIONS).map(([name, types]) => [name, library.func(name, 'int', [...types])]);
    return Object.fromEntries(bound);
  } catch (cause) {
    throw noDriver(`${path} is older than driver 450, or is not a CUDA driver: ${(cause as Error).message}`, cause);
  }
}

function textOf(
  koffi: typeof import('koffi').default,
  library: LibraryHandle,
): (code: number) => { resultName: string; text: string } {
  const text = koffi.out(koffi.pointer('const char*', 1));
  const nameOf = library.func('cuGetErrorName', 'int', ['int', text]);
  const messageOf = library.func('cuGetErrorString', 'int', ['int', text]);
  const ask = (from: typeof nameOf, code: number): string | null => {
    const answer: (string | null)[] = [null];
    return from(code, answer) === SUCCESS ? (answer[0] ?? null) : null;
  };
  return (code) => ({
    resultName: ask(nameOf, code) ?? `error ${code}`,
    text: ask(messageOf, code) ?? 'the driver has no text for it',
  });
}

function noDriver(why: string, cause: unknown): NoCudaError {
  return new NoCudaError(
    {},
    sentence`Found no CUDA driver (${why}): install NVIDIA's driver, set SHARDTOOL_CUDA_DRIVER to the path of its library, or remove the option ${optionName('device')}.`,
    { cause },
  );
}

function remedyOf(code: number): string | Sentence {
  if (code === OUT_OF_MEMORY)
    return sentence`: choose a smaller ${optionName('batchSize')}, fewer device slots or a smaller dtype`;
  if (code === NO_BINARY_FOR_GPU) return ': the device needs compute capability 5.0 or more';
  return '';
}
