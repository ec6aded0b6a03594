import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { beginLoading, nativeCalls } from '@shardtool/base';
import type { LibraryHandle } from 'koffi';

/** The functions of TurboJPEG 3 that decoding needs (turbojpeg.h of libjpeg-turbo 3.1). */
export interface TurboJpegLibrary {
  /** Creates a decompressor. Returns null if there is no memory. */
  create(): unknown;
  destroy(handle: unknown): void;
  /** Reads the header. Returns a negative value on an error or a warning. */
  readHeader(handle: unknown, bytes: Uint8Array, length: number): number;
  get(handle: unknown, parameter: number): number;
  set(handle: unknown, parameter: number, value: number): number;
  /** Sets the region to decode, in pixels. The whole image if width and height are 0. */
  setCrop(handle: unknown, x: number, y: number, width: number, height: number): number;
  setScale(handle: unknown, numerator: number, denominator: number): number;
  /** Decodes to an address or into an array, with rows `pitch` bytes apart. Returns a negative value on an error or a warning. */
  decompress(
    handle: unknown,
    bytes: Uint8Array,
    length: number,
    target: number | Uint8Array,
    pitch: number,
    pixelFormat: number,
  ): number;
  errorText(handle: unknown): string;
  /** The address of an array's first byte. */
  address(array: Uint8Array): number;
}

/** File name of the library. It only exists for Linux. scripts/bundle.mjs copies it. */
const LIBRARY = 'libturbojpeg.so.0';

/** `enum TJINIT` */
const INIT_DECOMPRESS = 1;

/**
 * Loads the shared library. Throws if it does not exist for this platform or cannot be loaded.
 */
export function loadTurboJpeg(): TurboJpegLibrary {
  const loaded = beginLoading();
  try {
    return load();
  } finally {
    loaded();
  }
}

function load(): TurboJpegLibrary {
  const koffi = nativeCalls<typeof import('koffi').default>();
  const failures: string[] = [];
  for (const path of libraryPaths()) {
    try {
      return bind(koffi, koffi.load(path));
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  const platform = `${process.platform}-${process.arch}`;
  throw new Error(failures.length > 0 ? failures.join('; ') : `there is no shared TurboJPEG library for ${platform}`);
}

function bind(koffi: typeof import('koffi').default, library: LibraryHandle): TurboJpegLibrary {
  const handle = 'void*';
  const bytes = 'const uint8_t*';
  const create = library.func('tj3Init', handle, ['int']);
  // The arguments are structs of int by value, which the 64-bit calling conventions of System V and Arm pass as words. With objects,
  // koffi would ask V8 for their properties, and crash the process if that fails, as in a worker that is being terminated.
  const setCrop = library.func('tj3SetCroppingRegion', 'int', [handle, 'int64', 'int64']);
  const setScale = library.func('tj3SetScalingFactor', 'int', [handle, 'int64']);
  return {
    create: () => create(INIT_DECOMPRESS),
    destroy: library.func('tj3Destroy', 'void', [handle]),
    readHeader: library.func('tj3DecompressHeader', 'int', [handle, bytes, 'size_t']),
    get: library.func('tj3Get', 'int', [handle, 'int']),
    set: library.func('tj3Set', 'int', [handle, 'int', 'int']),
    setCrop: (decompressor, x, y, width, height) => setCrop(decompressor, word(x, y), word(width, height)),
    setScale: (decompressor, numerator, denominator) => setScale(decompressor, word(numerator, denominator)),
    decompress: library.func('tj3Decompress8', 'int', [handle, bytes, 'size_t', 'void*', 'int', 'int']),
    errorText: library.func('tj3GetErrorStr', 'const char*', [handle]),
    address: (array) => Number(koffi.address(array)),
  };
}

/** Packs two non-negative ints of a struct into a little-endian word of 8 bytes. */
function word(first: number, second: number): number {
  return second * 2 ** 32 + first;
}

/**
 * Existing paths of the library for this platform, the most likely first: in lib/turbojpeg next to this module or, if this module
 * runs from the dist folder of a checkout, in the package that scripts/bundle.mjs copies it from.
 */
function libraryPaths(): string[] {
  const bundled = join(import.meta.dirname, 'turbojpeg');
  const folder = existsSync(bundled) ? (platform: string) => join(bundled, platform) : inPackage();
  const platform = `${process.platform}-${process.arch}`;
  const libc =
    process.platform === 'linux' && existsSync(`/lib/ld-musl-${machine()}.so.1`) ? ['-musl', ''] : ['', '-musl'];
  return libc.map((c) => join(folder(`${platform}${c}`), LIBRARY)).filter((path) => existsSync(path));
}

function inPackage(): (platform: string) => string {
  const prebuilds = createRequire(import.meta.url).resolve('@julusian/jpeg-turbo/package.json');
  return (platform) => join(dirname(prebuilds), `prebuilds/jpeg-turbo-${platform}`);
}

/** The name of the processor in musl's file names. */
function machine(): string {
  return process.arch === 'x64' ? 'x86_64' : process.arch === 'arm64' ? 'aarch64' : process.arch;
}
