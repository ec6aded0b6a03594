import { sentence, warn } from '@shardtool/base';
import type { CodecName } from '../codec/codec.js';
import { type PixelFormat, RGB } from '../codec/pixel-format.js';
import type { MixtureState } from '../mixture/mixture-state.js';
import { type DatasetState, StateError } from '../order/state.js';
import type { DecodeMode } from '../transform/plan.js';
import type { TransformInput } from '../transform/transform.js';
import type { BucketState } from './setup/order/bucket-order.js';

/** The next sample of a dataset or of a mixture. */
export type OrderState = (DatasetState | MixtureState) & { readonly buckets?: BucketState };

/**
 * The exact position of a run: plain JSON of about 300 bytes, the same on all ranks. A run may resume from it with
 * another number of ranks, another batch size and another `lastBatch`. All other values determine the order or the
 * pixels, and must stay the same.
 */
export type LoaderState = OrderState & {
  readonly decode: DecodeMode;
  /** The codec that decoded JPEGs; null if images stay encoded. Absent in states of earlier versions. */
  readonly codec?: CodecName | null;
  /** Channels and dtype of decoded images, and their background, if they are not 8-bit RGB without one. */
  readonly pixels?: PixelFormat;
  /** The transform of the epoch, if it depends on the epoch. */
  readonly transform?: TransformInput | 'raw' | undefined;
};

/**
 * Returns how images are decoded. A resumed run decodes as before. Throws {@link StateError} if the option differs from
 * the state.
 */
export function decodeModeOf(asked: DecodeMode | undefined, state: unknown): DecodeMode {
  if (state === undefined) return asked ?? 'scaled';
  // States of versions without this option lack the key.
  const { decode = 'scaled' } = (state ?? {}) as { decode?: DecodeMode };
  if (!['exact', 'scaled', 'fast'].includes(decode)) {
    throw new StateError({}, `This is not a state of a loader (decode: ${JSON.stringify(decode)}).`);
  }
  if (asked === undefined || asked === decode) return decode;
  throw new StateError(
    {},
    `The state was saved with decode ${decode}, but decode is ${asked} now, which would change the pixels: set decode to ${decode}, ` +
      'or start without a state.',
  );
}

/** Throws {@link StateError} if a run resumes with pixels of another format. */
export function checkFormatOf(format: PixelFormat, state: unknown): void {
  if (state === undefined) return;
  const before = (state as { pixels?: PixelFormat } | null)?.pixels ?? RGB;
  if (JSON.stringify(before) === JSON.stringify(format)) return;
  throw new StateError(
    {},
    sentence`The state was saved with ${textOf(before)}, but the options now mean ${textOf(format)}, which would change the pixels: keep the earlier channels, pixelDtype and background, or start without a state.`,
  );
}

function textOf({ channels, dtype, background }: PixelFormat): string {
  return `${channels} channels of ${dtype}${background === null ? '' : ` over ${JSON.stringify(background)}`}`;
}

/** Node's code for the warning below. */
const OTHER_CODEC = 'SHARDTOOL_OTHER_CODEC';

/**
 * Warns if a run resumes with another codec than its state names. Both decode whole JPEGs to the same pixels, but only
 * TurboJPEG can decode them at a fraction of their size.
 */
export function warnOfOtherCodec(state: unknown, codec: CodecName | null, decode: DecodeMode): void {
  const before = (state as { codec?: unknown } | undefined)?.codec;
  if (typeof before !== 'string' || codec === null || before === codec || decode === 'exact') return;
  warn(
    OTHER_CODEC,
    `The state was saved while ${before} decoded JPEGs, but now ${codec} does: with decode '${decode}', images that become much ` +
      `smaller have different pixels from here on. Set SHARDTOOL_CODEC=${before}, or train with decode 'exact'.`,
  );
}
