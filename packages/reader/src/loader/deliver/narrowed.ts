import { warn } from '@shardtool/base';

/** Code of the warning in Node. */
const CODE = 'SHARDTOOL_NARROWED';

const MESSAGE =
  'Some images have more than 8 bits per channel, and their pixels are the upper 8 bits of each value: 12-bit values in a 16-bit ' +
  'PNG become 16 levels. Scale them to 8 bits before packing, or store the values as a field of .npy.';

const warned = new WeakSet<object>();

/**
 * Warns once per `decoding`, which is a loader's workers or a decoder, that decoding images reduced their bit depth.
 */
export function warnNarrowed(decoding: object): void {
  if (warned.has(decoding)) return;
  warned.add(decoding);
  warn(CODE, MESSAGE);
}
