/** What a field's bytes mean, by the field's name, as WebDataset's decoders have it. */
export type FieldValue = number | string | Uint8Array | JsonValue;
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue };

const INTEGERS = new Set(['cls', 'cls2', 'class', 'count', 'index', 'inx', 'id']);
const TEXTS = new Set(['txt', 'text', 'transcript']);
const JSONS = new Set(['json', 'jsn']);

/**
 * The value of a field: a number for `cls`, `count`, `index` and their like, a string for `txt`, what JSON says for
 * `json`, and a copy of the bytes for everything else. The last extension decides (`seg.json` is JSON). Throws a
 * SyntaxError where the bytes are not what the name says.
 */
export function fieldValue(field: string, bytes: Uint8Array): FieldValue {
  const extension = field.slice(field.lastIndexOf('.') + 1);
  if (INTEGERS.has(extension)) return integer(field, text(bytes));
  if (TEXTS.has(extension)) return text(bytes);
  if (JSONS.has(extension)) return JSON.parse(text(bytes)) as JsonValue;
  return bytes.slice();
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
