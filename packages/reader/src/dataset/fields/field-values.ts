import { fieldType, type NpyArray, parseJson, readNpy } from '@shardtool/format';

/** A decoded field. */
export type FieldValue = Uint8Array | NpyArray | JsonValue;
/** A bigint is an integer beyond 2^53, which a number may not represent exactly. */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/**
 * Decodes a field by the type in its name: a number for `cls`, `count`, `index` and similar names, a string for `txt`,
 * the parsed value for `json`, an array for `npy`, and a copy of the bytes for all others. Throws a SyntaxError or an
 * NpyError if the bytes do not match the name.
 */
export function fieldValue(field: string, bytes: Uint8Array): FieldValue {
  if (field === 'npy' || field.endsWith('.npy')) return readNpy(bytes);
  switch (fieldType(field)) {
    case 'integer':
      return integer(field, text(bytes));
    case 'text':
      return text(bytes);
    case 'json':
      return parseJson(text(bytes)) as JsonValue;
    default:
      return new Uint8Array(bytes);
  }
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

function integer(field: string, digits: string): number {
  const value = Number(digits.trim());
  if (!Number.isSafeInteger(value) || digits.trim() === '') {
    throw new SyntaxError(`field "${field}" is "${digits.slice(0, 40)}", not an integer`);
  }
  return value;
}
