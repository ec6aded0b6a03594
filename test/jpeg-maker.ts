import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** 8-bit samples without gaps: 3 per pixel, or 4 for CMYK. */
export interface Samples {
  readonly width: number;
  readonly height: number;
  readonly channels: 3 | 4;
  readonly values: Uint8Array;
}

export interface JpegOptions {
  readonly quality: number;
  /** `enum TJSAMP`: 4:4:4, 4:2:2, 4:2:0, gray, 4:4:0, 4:1:1, 4:4:1. */
  readonly subsampling: number;
  readonly optimize?: boolean;
  readonly progressive?: boolean;
  readonly arithmetic?: boolean;
  /** MCUs, or rows of them, between restart markers; 0 for none. */
  readonly restartBlocks?: number;
  readonly restartRows?: number;
}

/** `enum TJPARAM` and `enum TJPF` of turbojpeg.h. */
const PARAMETERS = {
  quality: 3,
  subsampling: 4,
  optimize: 11,
  progressive: 12,
  arithmetic: 14,
  restartBlocks: 18,
  restartRows: 19,
};
const FORMAT_RGB = 0;
const FORMAT_CMYK = 11;

/** The functions of koffi that are used here. Only the packages depend on koffi. */
interface Koffi {
  load(path: string): { func(prototype: string): (...values: unknown[]) => unknown };
  decode(pointer: unknown, type: unknown): Uint8Array;
  array(type: string, length: number, kind: string): unknown;
}

const require = createRequire(new URL('../packages/reader/package.json', import.meta.url));

/** A JPEG from libjpeg-turbo, with options that no image library offers. */
export function makeJpeg({ width, height, channels, values }: Samples, options: JpegOptions): Uint8Array {
  const { koffi, compress, set, free, errorText, handle } = open();
  const all = { optimize: false, progressive: false, arithmetic: false, restartBlocks: 0, restartRows: 0, ...options };
  for (const [name, parameter] of Object.entries(PARAMETERS)) {
    const value = Number(all[name as keyof JpegOptions]);
    if (name.startsWith('restart') && value === 0) continue;
    set(handle, parameter, value);
  }
  const [buffers, sizes] = [[null], [0n]];
  const format = channels === 4 ? FORMAT_CMYK : FORMAT_RGB;
  const result = compress(handle, values, width, 0, height, format, buffers, sizes) as number;
  for (const name of ['restartBlocks', 'restartRows'] as const) set(handle, PARAMETERS[name], 0);
  if (result < 0) throw new Error(String(errorText(handle)));
  const bytes = Uint8Array.from(koffi.decode(buffers[0], koffi.array('uint8', Number(sizes[0]), 'Typed')));
  free(buffers[0]);
  return bytes;
}

let opened: ReturnType<typeof load> | undefined;

function open() {
  opened ??= load();
  return opened;
}

function load() {
  const koffi = require('koffi') as Koffi;
  const prebuilds = join(dirname(require.resolve('@julusian/jpeg-turbo/package.json')), 'prebuilds');
  const folder = readdirSync(prebuilds).find(
    (name) =>
      name === `jpeg-turbo-${process.platform}-${process.arch}` &&
      existsSync(join(prebuilds, name, 'libturbojpeg.so.0')),
  )!;
  const library = koffi.load(join(prebuilds, folder, 'libturbojpeg.so.0'));
  return {
    koffi,
    set: library.func('int tj3Set(void*, int, int)'),
    compress: library.func(
      'int tj3Compress8(void*, const uint8_t*, int, int, int, int, _Inout_ void**, _Inout_ size_t*)',
    ),
    free: library.func('void tj3Free(void*)'),
    errorText: library.func('const char* tj3GetErrorStr(void*)'),
    handle: library.func('void* tj3Init(int)')(0),
  };
}
