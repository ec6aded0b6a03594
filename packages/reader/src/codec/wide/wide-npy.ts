import { NpyError, SampleDecodeError } from '@shardtool/base';
import { type NpyHeader, readNpyHeader } from '@shardtool/format';
import { halfFloatValue } from '../../kernels/half-float.js';
import { SOURCE_SLACK_BYTES } from '../../kernels/resize.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from '../codec.js';
import type { PixelDtype, PixelFormat } from '../pixel-format.js';
import type { Scratch } from '../scratch.js';
import { ARRAYS, otherDtype } from './dtype-arrays.js';

/** NumPy's types that can be read, with their size and how a value is read. */
const READERS: Readonly<
  Record<string, readonly [bytes: number, read: (view: DataView, at: number, little: boolean) => number]>
> = {
  u1: [1, (view, at) => view.getUint8(at)],
  b1: [1, (view, at) => view.getUint8(at)],
  i1: [1, (view, at) => view.getInt8(at)],
  u2: [2, (view, at, little) => view.getUint16(at, little)],
  i2: [2, (view, at, little) => view.getInt16(at, little)],
  u4: [4, (view, at, little) => view.getUint32(at, little)],
  i4: [4, (view, at, little) => view.getInt32(at, little)],
  f2: [2, (view, at, little) => halfFloatValue(view.getUint16(at, little))],
  f4: [4, (view, at, little) => view.getFloat32(at, little)],
  f8: [8, (view, at, little) => view.getFloat64(at, little)],
};
const NPY_TYPES: Readonly<Record<PixelDtype, readonly string[]>> = {
  uint8: ['u1', 'b1'],
  uint16: ['u2'],
  int16: ['i2'],
  float32: Object.keys(READERS),
};

/** Arrays [height, width, channels], or [height, width] for one channel. Only the values of the crop are read. */
export class WideNpyCodec implements ImageCodec {
  readonly name = 'npy';
  readonly #format: PixelFormat;
  #header: NpyHeader = { dtype: '|u1', shape: [], fortranOrder: false, offset: 0 };

  constructor(format: PixelFormat) {
    this.#format = format;
  }

  header(bytes: Uint8Array): ImageHeader {
    const { channels, dtype } = this.#format;
    try {
      this.#header = readNpyHeader(bytes);
    } catch (cause) {
      if (!(cause instanceof NpyError)) throw cause;
      throw new SampleDecodeError({}, cause.message, { cause });
    }
    const { shape, fortranOrder, offset } = this.#header;
    const type = typeOf(this.#header);
    const [height = 0, width = 0, stored = 1] = shape;
    const isImage = (shape.length === 2 || shape.length === 3) && height > 0 && width > 0;
    if (!isImage || fortranOrder || !Object.hasOwn(READERS, type)) {
      throw new SampleDecodeError(
        {},
        `it is an array of ${this.#header.dtype} of the shape (${shape.join(', ')})${fortranOrder ? ' in Fortran order' : ''}, ` +
          'but an image must be (height, width, channels) of numbers',
      );
    }
    if (stored !== channels) {
      throw new SampleDecodeError(
        {},
        `it is an array of the shape (${shape.join(', ')}), but the option channels is ${channels}: set channels to ${stored}`,
      );
    }
    if (!NPY_TYPES[dtype].includes(type)) throw otherDtype(NAMES[type] ?? type, dtype);
    const missing = offset + height * width * channels * READERS[type]![0] - bytes.length;
    if (missing > 0)
      throw new SampleDecodeError({}, `it ends ${missing} bytes before its last pixel: restore it from its source`);
    return { width, height, reducible: false };
  }

  /** Null: the whole array is read. */
  openStored(): null {
    return null;
  }

  readRegion(): never {
    throw new Error('An array that is not 8-bit RGB is read as a whole.');
  }

  decodeRegion(bytes: Uint8Array, crop: Rect, _reduction: Reduction, scratch: Scratch): Pixels {
    const { channels, dtype } = this.#format;
    const { shape, offset, dtype: stored } = this.#header;
    const [size, read] = READERS[typeOf(this.#header)]!;
    const little = !stored.startsWith('>');
    const row = crop.width * channels;
    const target = scratch.allocate(row * crop.height * ARRAYS[dtype].BYTES_PER_ELEMENT + SOURCE_SLACK_BYTES);
    const isSame =
      size === ARRAYS[dtype].BYTES_PER_ELEMENT &&
      (little || size === 1) &&
      NPY_TYPES[dtype][0] === typeOf(this.#header);
    const isFloat = dtype === 'float32' && typeOf(this.#header) === 'f4' && little;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const values = new ARRAYS[dtype](scratch.memory.buffer as ArrayBuffer, target, row * crop.height);
    for (let y = 0; y < crop.height; y++) {
      const from = offset + ((crop.y + y) * shape[1]! + crop.x) * channels * size;
      if (isFloat || (isSame && dtype !== 'float32')) {
        scratch.memory.set(bytes.subarray(from, from + row * size), target + y * row * size);
        continue;
      }
      for (let i = 0; i < row; i++) values[y * row + i] = read(view, from + i * size, little);
    }
    return { offset: target, stride: row * ARRAYS[dtype].BYTES_PER_ELEMENT, warnings: 0 };
  }

  /** Always 0: {@link header} has checked the length, and nothing else can be wrong. */
  check(): number {
    return 0;
  }

  close(): void {}
}

const NAMES: Readonly<Record<string, string>> = { u1: 'uint8', b1: 'uint8', u2: 'uint16', i2: 'int16', f4: 'float32' };

function typeOf({ dtype }: NpyHeader): string {
  return dtype.replace(/^[<>|=]/, '');
}
