import type { CodecName } from './codec.js';
import { OwnCodec } from './own-codec.js';
import { type CodecChoice, openCodecs, openImage } from './select.js';
import { SharpCodec } from './sharp.js';

/** Checks whether images can be decoded completely, for `verify --check decode` and `pack --check decode`. */
export interface Checker {
  readonly codec: CodecChoice;
  /**
   * Decodes the whole image and discards the pixels. `warnings` is 1 if the decoder reported a warning. Throws, or rejects with,
   * SampleDecodeError if the image cannot be decoded or its data end before the end marker.
   */
  check(bytes: Uint8Array): CheckResult | Promise<CheckResult>;
  /**
   * The RGB pixels of an image that sharp cannot decode, or would decode with wrong colours or another size: GIF, BMP, PPM, PGM, PBM,
   * and TIFF with YCbCr colours. Null for any other image. Rejects with the errors of {@link check}.
   */
  misreadPixels(bytes: Uint8Array): Promise<RawPixels | null>;
  close(): void;
}

/** RGB pixels, three bytes per pixel, row by row. */
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
      if (codec instanceof OwnCodec) return { data: codec.pixels(bytes, header), width, height };
      return codec instanceof SharpCodec && codec === codecs.other ? codec.misreadPixels(bytes) : null;
    },
    close() {
      codecs.jpeg.close();
      codecs.other.close();
    },
  };
}
