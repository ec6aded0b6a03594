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
  close(): void;
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
    close() {
      codecs.jpeg.close();
      codecs.other.close();
    },
  };
}
