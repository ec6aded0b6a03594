import { NpyError } from '@shardtool/base';

/** The header of a `.npy` file (NumPy, "The .npy format", NEP 1). */
export interface NpyHeader {
  /** The type in NumPy's notation: `|u1`, `<f4`; for a structured array the list, as text. */
  readonly dtype: string;
  /** Columns first: the first index changes fastest. */
  readonly fortranOrder: boolean;
  /** Empty for a single value. */
  readonly shape: readonly number[];
  /** Offset of the values. */
  readonly offset: number;
}

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59] as const;
/** Version 1.0: magic, two bytes of version, two of length. Versions 2.0 and 3.0 have four of length. */
const SHORT_PREAMBLE = 10;
const LONG_PREAMBLE = 12;
/** The offset of the values is a multiple of this. */
const ALIGNMENT = 64;

const ENTRY = /^\s*,?\s*'(descr|fortran_order|shape)'\s*:\s*/;

/** Whether these are the first bytes of a `.npy` file. Called for every image: a closure would cost as much as the crop. */
export function isNpy(bytes: Uint8Array): boolean {
  if (bytes.length < SHORT_PREAMBLE) return false;
  for (let i = 0; i < MAGIC.length; i++) if (bytes[i] !== MAGIC[i]) return false;
  return true;
}

/** The offset of the values, for bytes that are {@link isNpy}. */
export function npyValuesOffset(bytes: Uint8Array): number {
  const short = bytes[8]! | (bytes[9]! << 8);
  if (bytes[6] === 1) return SHORT_PREAMBLE + short;
  return LONG_PREAMBLE + short + (bytes[10]! | (bytes[11]! << 8)) * 0x10000;
}

/** Reads the header. Throws {@link NpyError} if it is not a `.npy` header, is truncated, or was not written by NumPy's rules. */
export function readNpyHeader(bytes: Uint8Array): NpyHeader {
  if (!isNpy(bytes)) throw new NpyError({}, 'it is not a .npy file: save it again with numpy.save');
  const version = bytes[6]!;
  if (version < 1 || version > 3) {
    throw new NpyError(
      {},
      `it is a .npy file of version ${version}, but only versions 1 to 3 are supported: save it again with numpy.save`,
    );
  }
  const start = version === 1 ? SHORT_PREAMBLE : LONG_PREAMBLE;
  const offset = npyValuesOffset(bytes);
  const length = offset - start;
  if (!(offset <= bytes.length)) throw new NpyError({}, 'its .npy header is truncated: restore it from its source');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString(version === 3 ? 'utf8' : 'latin1');
  return { ...parseDictionary(text), offset };
}

/** The header of an array in C order, in version 1.0. */
export function encodeNpyHeader(dtype: string, shape: readonly number[]): Uint8Array {
  const tuple = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const dictionary = `{'descr': '${dtype}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const total = Math.ceil((SHORT_PREAMBLE + dictionary.length + 1) / ALIGNMENT) * ALIGNMENT;
  const header = Buffer.alloc(total, ' ');
  header.set([...MAGIC, 1, 0]);
  header.writeUInt16LE(total - SHORT_PREAMBLE, 8);
  header.write(dictionary, SHORT_PREAMBLE, 'latin1');
  header.write('\n', total - 1, 'latin1');
  return header;
}

/** Parses a Python dictionary of exactly three entries. Nothing is evaluated. */
function parseDictionary(text: string): Omit<NpyHeader, 'offset'> {
  const body = /^\{(.*)\}\s*$/s.exec(text.trim())?.[1];
  if (body === undefined) throw malformed(text);
  const values = new Map<string, string>();
  let rest = body;
  while (rest.replace(/^\s*,?\s*/, '') !== '') {
    const entry = ENTRY.exec(rest);
    if (entry === null || values.has(entry[1]!)) throw malformed(text);
    rest = rest.slice(entry[0].length);
    const value = literalAt(rest);
    if (value === null) throw malformed(text);
    values.set(entry[1]!, value);
    rest = rest.slice(value.length);
  }
  const descr = values.get('descr');
  const order = values.get('fortran_order');
  const shape = values.get('shape');
  if (descr === undefined || shape === undefined || (order !== 'True' && order !== 'False')) throw malformed(text);
  return {
    dtype: /^(['"]).*\1$/.test(descr) ? descr.slice(1, -1) : descr,
    fortranOrder: order === 'True',
    shape: parseShape(shape, text),
  };
}

/** The Python literal at the start of a text: a string, a word, or brackets with their content. */
function literalAt(text: string): string | null {
  const simple = /^('[^']*'|"[^"]*"|\w+)/.exec(text);
  if (simple !== null) return simple[1]!;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const quoted = /^('[^']*'|"[^"]*")/.exec(text.slice(i));
    if (quoted !== null) i += quoted[0].length - 1;
    else if ('([{'.includes(text[i]!)) depth++;
    else if (')]}'.includes(text[i]!)) depth--;
    if (depth === 0) return i > 0 ? text.slice(0, i + 1) : null;
  }
  return null;
}

function parseShape(shape: string, header: string): number[] {
  const inner = /^\(([\dL\s,]*)\)$/.exec(shape)?.[1];
  if (inner === undefined) throw malformed(header);
  const sizes = inner.split(',').map((size) => size.trim().replace(/L$/, ''));
  if (sizes.at(-1) === '') sizes.pop();
  const numbers = sizes.map(Number);
  if (sizes.includes('') || !numbers.every(Number.isSafeInteger)) throw malformed(header);
  return numbers;
}

function malformed(header: string): NpyError {
  return new NpyError(
    {},
    `its .npy header does not follow NumPy's format (${header.trim().slice(0, 80)}): save it again with numpy.save`,
  );
}
