import { NpyError } from '@shardtool/base';
import { type NpyData, reverseNumbers, simpleDtype, typedArray } from './array.js';
import { npyValuesOffset, readNpyHeader } from './header.js';

/** The dtype and shape that all rows of a stacked array have. */
export interface NpyRow {
  /** In NumPy's notation, in this machine's byte order: `|u1`, `<f2`. */
  readonly dtype: string;
  /** Empty for single values. */
  readonly shape: readonly number[];
}

/** Arrays of one dtype and shape, one after the other: an array of the shape [n, ...shape]. */
export interface StackedArray extends NpyRow {
  /** In C order. float16, complex numbers, texts and dates, for which JavaScript has no arrays, are bytes. */
  readonly data: NpyData;
}

/** An array has another dtype or shape than the rows that it should be one of. */
export class OtherNpyRow extends Error {
  readonly found: NpyRow;

  constructor(found: NpyRow) {
    super(`it is an array of ${describeNpyRow(found)}`);
    this.found = found;
  }
}

/**
 * The dtype and shape of a `.npy` file as a row. Null for structured arrays, which cannot be stacked. Throws {@link
 * NpyError} if it is not a `.npy` file, has pickled objects, or lacks values.
 */
export function npyRowOf(bytes: Uint8Array): NpyRow | null {
  const layout = layoutOf(bytes);
  return layout?.row ?? null;
}

/** Bytes of a row. */
export function npyRowBytes({ dtype, shape }: NpyRow): number {
  return shape.reduce((product, size) => product * size, simpleDtype(dtype)!.valueBytes);
}

export function isSameNpyRow(a: NpyRow, b: NpyRow): boolean {
  return a.dtype === b.dtype && a.shape.length === b.shape.length && a.shape.every((size, i) => size === b.shape[i]);
}

/** `float16 (4, 64, 64)`. */
export function describeNpyRow({ dtype, shape }: NpyRow): string {
  return `${nameOfDtype(dtype)} (${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
}

/** The values of rows in C order: a typed array, or bytes for dtypes that JavaScript does not have. No copy. */
export function npyRowValues(bytes: Uint8Array, { dtype }: NpyRow): NpyData {
  return typedArray(dtype, bytes);
}

/**
 * Copies the values of `.npy` files to rows. The header of a file is parsed only if it differs from that of the file
 * before it.
 */
export class NpyRowCopier {
  readonly #row: NpyRow;
  #header = new Uint8Array(0);
  #layout: Layout | null = null;

  constructor(row: NpyRow) {
    this.#row = row;
  }

  /**
   * Copies the values to `target` in C order and this machine's byte order. Throws {@link OtherNpyRow} for an array of
   * another dtype or shape, and {@link NpyError} as {@link npyRowOf} does.
   */
  copy(bytes: Uint8Array, target: Uint8Array): void {
    const { header, valueBytes, swapBytes, row, fortranOrder } = this.#layoutOf(bytes);
    const values = bytes.subarray(header, header + target.length);
    if (!fortranOrder || row.shape.length < 2) target.set(values);
    else copyToCOrder(values, target, row.shape, valueBytes);
    if (swapBytes > 1) reverseNumbers(target, swapBytes);
  }

  #layoutOf(bytes: Uint8Array): Layout {
    const known = this.#layout;
    if (known !== null && bytes.length === known.bytes && startsWith(bytes, this.#header)) return known;
    const layout = layoutOf(bytes);
    if (layout === null) throw new NpyError({}, 'it is a structured array, unlike the others');
    if (!isSameNpyRow(layout.row, this.#row)) throw new OtherNpyRow(layout.row);
    this.#layout = layout;
    this.#header = bytes.slice(0, layout.header);
    return layout;
  }
}

/** NumPy 1 has at most as many dimensions. */
const MOST_DIMENSIONS = 32;

interface Layout {
  readonly row: NpyRow;
  /** Length of the header. */
  readonly header: number;
  /** Length of the file. */
  readonly bytes: number;
  readonly valueBytes: number;
  /** Size of the numbers whose bytes are in reverse order; 1 if no bytes are. */
  readonly swapBytes: number;
  readonly fortranOrder: boolean;
}

function layoutOf(bytes: Uint8Array): Layout | null {
  const { dtype, shape, fortranOrder, offset } = readNpyHeader(bytes);
  const simple = simpleDtype(dtype);
  if (simple === null) return null;
  const { valueBytes, numberBytes, type } = simple;
  const largest = shape.reduce((product, size) => product * Math.max(1, size), valueBytes);
  if (shape.length > MOST_DIMENSIONS || largest > Number.MAX_SAFE_INTEGER) {
    throw new NpyError(
      {},
      `its shape is not one that NumPy can have, with ${shape.length} dimensions: save it again with numpy.save`,
    );
  }
  const needed = shape.reduce((product, size) => product * size, valueBytes);
  const there = bytes.length - npyValuesOffset(bytes);
  if (there !== needed) {
    throw new NpyError(
      {},
      `its header promises ${needed} bytes of values (${describeNpyRow({ dtype, shape })}), but it has ${there}: restore it from its source`,
    );
  }
  return {
    row: { dtype: numberBytes === 1 ? `|${type}` : `<${type}`, shape },
    header: offset,
    bytes: bytes.length,
    valueBytes,
    swapBytes: dtype.startsWith('>') ? numberBytes : 1,
    fortranOrder,
  };
}

function startsWith(bytes: Uint8Array, begin: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, begin.length), begin) === 0;
}

/** The first index changes fastest in `values`, the last one in `target`. */
function copyToCOrder(values: Uint8Array, target: Uint8Array, shape: readonly number[], valueBytes: number): void {
  const strides: number[] = [];
  let stride = valueBytes;
  for (const size of shape) {
    strides.push(stride);
    stride *= size;
  }
  const index = shape.map(() => 0);
  let from = 0;
  for (let to = 0; to < target.length; to += valueBytes) {
    for (let byte = 0; byte < valueBytes; byte++) target[to + byte] = values[from + byte]!;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis]!++;
      from += strides[axis]!;
      if (index[axis]! < shape[axis]!) break;
      from -= strides[axis]! * shape[axis]!;
      index[axis] = 0;
    }
  }
}

const KINDS: Readonly<Record<string, string>> = { u: 'uint', i: 'int', f: 'float', c: 'complex' };

function nameOfDtype(dtype: string): string {
  const type = dtype.replace(/^[<>|=]/, '');
  const kind = KINDS[type[0]!];
  if (type === 'b1') return 'bool';
  return kind === undefined ? type : `${kind}${Number(type.slice(1)) * 8}`;
}
