import { NpyError } from '@shardtool/base';
import { readNpyHeader } from './header.js';

/** Typed arrays for the values that JavaScript supports; bytes for all others. */
export type NpyData =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigUint64Array
  | BigInt64Array
  | Float32Array
  | Float64Array;

/** A NumPy array. */
export interface NpyArray {
  /** The type in NumPy's notation, and in this machine's byte order if `data` holds numbers: `|u1`, `<f4`. */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** True: the first index changes fastest. */
  readonly fortranOrder: boolean;
  /** The values in the order of the file. float16, complex numbers, texts, dates and structures are bytes. */
  readonly data: NpyData;
}

const ARRAYS = {
  u1: Uint8Array,
  b1: Uint8Array,
  i1: Int8Array,
  u2: Uint16Array,
  i2: Int16Array,
  u4: Uint32Array,
  i4: Int32Array,
  u8: BigUint64Array,
  i8: BigInt64Array,
  f4: Float32Array,
  f8: Float64Array,
} as const;

/** Other dtypes of NumPy: float16 and long double, complex numbers, texts, bytes, dates and durations. */
const PLAIN =
  /^(?:f(2|12|16)|c(8|16|24|32)|[SaV](\d{1,9})|U(\d{1,9})|[mM](8)(?:\[\d*(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as|generic)(?:\/\d+)?\])?)$/;

/** Size in bytes of a value of such a dtype; null for any other. Letters of `U5` have 4 bytes each. */
function plainBytes(type: string): number | null {
  const [, ...sizes] = PLAIN.exec(type) ?? [];
  const size = sizes.find((found) => found !== undefined);
  if (size === undefined) return null;
  return Number(size) * (type.startsWith('U') ? 4 : 1);
}

/** A dtype that is not structured. */
export interface SimpleDtype {
  /** Without its byte order: `f4`, `U5`, `M8[ns]`. */
  readonly type: string;
  readonly valueBytes: number;
  /** Size of the numbers of a value whose bytes have an order: 4 for `c8` and `U5`, 1 for `S5`. */
  readonly numberBytes: number;
}

/** Returns null for a structured dtype. Throws {@link NpyError} for pickled objects and unknown dtypes. */
export function simpleDtype(dtype: string): SimpleDtype | null {
  refuseObjects(dtype);
  if (dtype.startsWith('[')) return null;
  const type = dtype.replace(/^[<>|=]/, '');
  const valueBytes = Object.hasOwn(ARRAYS, type)
    ? ARRAYS[type as keyof typeof ARRAYS].BYTES_PER_ELEMENT
    : plainBytes(type);
  if (valueBytes === null) throw unknownDtype(dtype);
  const kind = type[0]!;
  if (kind === 'U') return { type, valueBytes, numberBytes: 4 };
  if (kind === 'c') return { type, valueBytes, numberBytes: valueBytes / 2 };
  return { type, valueBytes, numberBytes: 'SaV'.includes(kind) ? 1 : valueBytes };
}

/** Values of a dtype that is not structured as a typed array, or the bytes if there is none for it. No copy. */
export function typedArray(dtype: string, bytes: Uint8Array): NpyData {
  const type = dtype.replace(/^[<>|=]/, '');
  if (!Object.hasOwn(ARRAYS, type)) return bytes;
  const kind = ARRAYS[type as keyof typeof ARRAYS];
  return new kind(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / kind.BYTES_PER_ELEMENT);
}

/** Reads an array. The returned values are a copy. Throws {@link NpyError} for pickled objects, and if values are missing. */
export function readNpy(bytes: Uint8Array): NpyArray {
  const { dtype, shape, fortranOrder, offset } = readNpyHeader(bytes);
  const count = shape.reduce((product, size) => product * size, 1);
  const type = dtype.replace(/^[<>|=]/, '');
  refuseObjects(dtype);
  const kind = Object.hasOwn(ARRAYS, type) ? ARRAYS[type as keyof typeof ARRAYS] : null;
  const valueBytes = kind?.BYTES_PER_ELEMENT ?? plainBytes(type) ?? restBytes(bytes.length - offset, count, dtype);
  // A copy: Buffer's own slice is a view.
  const values = new Uint8Array(bytes.subarray(offset, offset + count * valueBytes));
  if (values.length !== count * valueBytes || bytes.length !== offset + values.length) {
    throw new NpyError(
      {},
      `its header promises ${shape.join('x')} values of ${dtype}, which need ${count * valueBytes} bytes, but it has ${bytes.length - offset}: ` +
        'restore it from its source',
    );
  }
  if (kind === null) return { dtype, shape, fortranOrder, data: values };
  if (dtype.startsWith('>')) reverseNumbers(values, valueBytes);
  const data = new kind(values.buffer, 0, count);
  return { dtype: valueBytes === 1 ? `|${type}` : `<${type}`, shape, fortranOrder, data };
}

/** Size of one value of a structured array, computed from the bytes present. */
function restBytes(bytes: number, count: number, dtype: string): number {
  if (dtype.startsWith('[')) return count === 0 ? 0 : bytes / count;
  throw unknownDtype(dtype);
}

function refuseObjects(dtype: string): void {
  const type = dtype.replace(/^[<>|=]/, '');
  if (!/^O\d*$/.test(type) && !(dtype.startsWith('[') && /['"][<>|=]?O\d*['"]/.test(dtype))) return;
  throw new NpyError({}, 'its values are pickled Python objects, which are never run: save it as an array of numbers');
}

function unknownDtype(dtype: string): NpyError {
  return new NpyError({}, `its values have the unknown dtype ${dtype}: save it as an array of numbers`);
}

/** Reverses the byte order of each number. */
export function reverseNumbers(bytes: Uint8Array, numberBytes: number): void {
  for (let at = 0; at < bytes.length; at += numberBytes) bytes.subarray(at, at + numberBytes).reverse();
}
