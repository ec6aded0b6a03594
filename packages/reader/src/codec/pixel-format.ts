import { OptionError, sentence } from '@shardtool/base';

/** The type of decoded values, before `toDtype` and `normalize`. */
export type PixelDtype = 'uint8' | 'uint16' | 'int16' | 'float32';

/** How images are decoded: the number of channels, and the type of their values. */
export interface PixelFormat {
  readonly channels: number;
  readonly dtype: PixelDtype;
  /** The colour behind transparent pixels, one value per colour channel, 0 to 255. Null: alpha is dropped. */
  readonly background: readonly [number, number, number] | null;
}

/** The default, for which there are kernels in WebAssembly. `decode/wide-passes.ts` transforms all other formats. */
export const RGB: PixelFormat = { channels: 3, dtype: 'uint8', background: null };

/** Whether pixels are 8-bit RGB, for which the kernels in WebAssembly are made. */
export function isRgb({ channels, dtype }: PixelFormat): boolean {
  return channels === 3 && dtype === 'uint8';
}

/** The largest value of a dtype, which `toDtype` with `scale` maps to 1. For float32: 1, so values are not scaled. */
export function fullScale(dtype: PixelDtype): number {
  return { uint8: 255, uint16: 65_535, int16: 32_767, float32: 1 }[dtype];
}

/** The options that determine a pixel format. */
export interface FormatOptions {
  readonly channels?: number | undefined;
  readonly pixelDtype?: PixelDtype | undefined;
  readonly background?: number | readonly number[] | undefined;
}

/** The format of these options. Throws {@link OptionError} for a background that the format cannot have. */
export function formatOf({ channels = 3, pixelDtype = 'uint8', background }: FormatOptions): PixelFormat {
  if (background === undefined)
    return channels === 3 && pixelDtype === 'uint8' ? RGB : { channels, dtype: pixelDtype, background: null };
  if (pixelDtype !== 'uint8' || (channels !== 1 && channels !== 3)) {
    throw new OptionError(
      {},
      sentence`background is for 8-bit images with 1 or 3 channels, but channels is ${channels} and pixelDtype is ${pixelDtype}: remove background.`,
    );
  }
  const values = typeof background === 'number' ? [background, background, background] : background;
  return { channels, dtype: pixelDtype, background: values as unknown as readonly [number, number, number] };
}

/** Whether a value is a {@link FormatOptions.background}. */
export function isBackground(value: unknown): boolean {
  const isByte = (one: unknown) => Number.isInteger(one) && (one as number) >= 0 && (one as number) <= 255;
  return isByte(value) || (Array.isArray(value) && value.length === 3 && value.every(isByte));
}
