import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { nativeCalls } from '@shardtool/base';
import type { LibraryHandle } from 'koffi';

/** The functions of TurboJPEG 3 that decoding needs (turbojpeg.h of libjpeg-turbo 3.1). */
export interface TurboJpegLibrary {
  /** A decompressor, or null. */
  create(): unknown;
  destroy(handle: unknown): void;
  /** Reads the header; negative on an error and on a warning. */
  readHeader(handle: unknown, bytes: Uint8Array, length: number): number;
  get(handle: unknown, parameter: number): number;
  set(handle: unknown, parameter: number, value: number): number;
  /** The region to decode, in pixels; all of the image where width and height are 0. */
  setCrop(handle: unknown, x: number, y: number, width: number, height: number): number;
  setScale(handle: unknown, numerator: number, denominator: number): number;
  /** Decodes to an address or into an array, rows `pitch` bytes apart; negative on an error and on a warning. */
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

/** The only kind of file there is: for Linux. scripts/bundle.mjs copies it. */
const LIBRARY = 'libturbojpeg.so.0';

/** `enum TJINIT` */
const INIT_DECOMPRESS = 1;

/**
 * Loads the shared library. Throws where there is none for this platform, or where it cannot be loaded.
 */
export function loadTurboJpeg(): TurboJpegLibrary {
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
  throw new Error(failures.length > 0 ? failures.join('; ') : `no shared TurboJPEG library comes for ${platform}`);
}

function bind(koffi: typeof import('koffi').default, library: LibraryHandle): TurboJpegLibrary {
  const handle = 'void*';
  const bytes = 'const uint8_t*';
  const create = library.func('tj3Init', handle, ['int']);
  // Structs of int by value: System V's and Arm's 64-bit calling conventions pass them as such words. As objects, koffi
  // would ask V8 for their properties, and crash the process where that fails: in a worker that is being ended.
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

/** Two ints (not negative) that lie one after the other in a struct, as the little-endian word of 8 bytes that they are. */
function word(first: number, second: number): number {
  return second * 2 ** 32 + first;
}

/**
 * Where the library for this platform may be, the likelier place first: in lib/turbojpeg next to this module, or, if this module runs
 * from a checkout's dist, in the package that scripts/bundle.mjs takes it from.
 */
function libraryPaths(): string[] {
  const bundled = join(import.meta.dirname, 'turbojpeg');
  const place = existsSync(bundled) ? (platform: string) => join(bundled, platform) : inPackage();
  const platform = `${process.platform}-${process.arch}`;
  const libc =
    process.platform === 'linux' && existsSync(`/lib/ld-musl-${machine()}.so.1`) ? ['-musl', ''] : ['', '-musl'];
  return libc.map((c) => join(place(`${platform}${c}`), LIBRARY)).filter((path) => existsSync(path));
}

function inPackage(): (platform: string) => string {
  const prebuilds = createRequire(import.meta.url).resolve('@julusian/jpeg-turbo/package.json');
  return (platform) => join(dirname(prebuilds), `prebuilds/jpeg-turbo-${platform}`);
}

/** The processor's name as musl has it. */
function machine(): string {
  return process.arch === 'x64' ? 'x86_64' : process.arch === 'arm64' ? 'aarch64' : process.arch;
}
