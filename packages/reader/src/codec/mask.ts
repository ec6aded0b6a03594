import { NpyError, SampleDecodeError } from '@shardtool/base';
import { isBytes, isNpy, readNpyHeader } from '@shardtool/format';
import { readPngValues, type Values } from './wide/png-values.js';

/**
 * Reads a mask: a gray or palette PNG, or a uint8 `.npy` array [height, width] or [height, width, 1]. Its values are the stored
 * values; for a palette, the indices. Throws {@link SampleDecodeError}.
 */
export function readMask(bytes: Uint8Array, maxPixels: number): Values {
  if (isNpy(bytes)) return npyMask(bytes);
  if (bytes[0] === 0x89 && bytes[1] === 0x50 && bytes[2] === 0x4e && bytes[3] === 0x47)
    return readPngValues(bytes, maxPixels);
  throw new SampleDecodeError(
    {},
    'it is not a mask: a mask is a gray or palette PNG, or a uint8 .npy array of height x width',
  );
}

function npyMask(bytes: Uint8Array): Values {
  try {
    const header = readNpyHeader(bytes);
    const { dtype, shape, fortranOrder, offset } = header;
    const [height = 0, width = 0, channels = 1, ...more] = shape;
    if (!isBytes(header) || channels !== 1 || more.length > 0 || width === 0) {
      const order = fortranOrder ? ' in Fortran order' : '';
      throw new NpyError(
        {},
        `it is an array of ${dtype} with the shape (${shape.join(', ')})${order}, but a mask is uint8 (height, width) in C order`,
      );
    }
    const values = bytes.subarray(offset, offset + width * height);
    if (values.length === width * height) return { width, height, values };
    throw new NpyError({}, `its array ends after ${values.length} of ${width * height} values`);
  } catch (cause) {
    if (!(cause instanceof NpyError)) throw cause;
    throw new SampleDecodeError({}, cause.message, { cause });
  }
}
