import type { CodecName } from './codec.js';
import { type CodecChoice, openCodecs, openImage } from './select.js';

/** Decodes whole images to see whether they can be, for `verify --decode` and `pack --check decode`. */
export interface Checker {
  readonly codec: CodecChoice;
  /**
   * Decodes all of an image and keeps nothing; `warnings` is 1 where something in it is odd. Throws or rejects with
   * SampleDecodeError where it cannot be decoded, and where its data end before its end marker.
   */
  check(bytes: Uint8Array): CheckResult | Promise<CheckResult>;
  /**
   * The RGB pixels of an image that sharp shows in other colours, or in another size: of a GIF, and of a TIFF of YCbCr colours. Null for
   * any other image. Rejects as {@link check} does.
   */
  misreadPixels(bytes: Uint8Array): Promise<RawPixels | null>;
  close(): void;
}

/** Three bytes a pixel, row by row. */
export interface RawPixels {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

export interface CheckResult {
  readonly warnings: number;
}

export async function createChecker(options: {
  readonly maxPixels: number;
  readonly codec?: CodecName;
}): Promise<Checker> {
  const codecs = await openCodecs(options);
  return {
    codec: codecs.choice,
    check(bytes) {
      const { codec } = openImage(codecs, bytes, options.maxPixels);
      const warnings = codec.check(bytes);
      return typeof warnings === 'number' ? { warnings } : warnings.then((count) => ({ warnings: count }));
    },
    async misreadPixels(bytes) {
      const { codec, header } = openImage(codecs, bytes, options.maxPixels);
      const { width, height } = header;
      if (codec === codecs.gif) return { data: codecs.gif.pixels(bytes, { x: 0, y: 0, width, height }), width, height };
      return codec === codecs.other ? codecs.other.misreadPixels(bytes) : null;
    },
    close() {
      codecs.jpeg.close();
      codecs.other.close();
    },
  };
}
