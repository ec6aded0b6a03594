import { decodeHead, headBytes, type ObjectHead } from './object.js';

/** Deeper than any label, and far from a stack overflow. */
const MAX_DEPTH = 100;

/**
 * The JSON text of the msgpack value that fills `bytes`: `7` for the integer 7, whatever its size; `[1,2]` for an
 * array. Throws a SyntaxError for values that JSON cannot express: binary data, NaN, a key that is not a string,
 * extension types.
 */
export function jsonText(bytes: Uint8Array): string {
  const reader = new JsonReader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const text = reader.value(0);
  if (reader.at !== bytes.length) throw new SyntaxError('bytes follow the value');
  return text;
}

class JsonReader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  value(depth: number): string {
    const head = this.#head();
    switch (head.kind) {
      case 'nil':
        return 'null';
      case 'boolean':
        return this.#bytes[this.at - 1] === 0xc3 ? 'true' : 'false';
      case 'integer':
        return this.#integer(head);
      case 'float':
        return this.#float(head);
      case 'str':
        return JSON.stringify(this.#take(head.payload).toString('utf8'));
      case 'bin':
        throw new SyntaxError('binary data inside a value');
      default:
        return this.#container(head, depth + 1);
    }
  }

  #container(head: ObjectHead, depth: number): string {
    if (depth > MAX_DEPTH) throw new SyntaxError(`values nested more than ${MAX_DEPTH} deep`);
    const parts: string[] = [];
    if (head.kind === 'array') {
      for (let i = 0; i < head.children; i++) parts.push(this.value(depth));
      return `[${parts.join(',')}]`;
    }
    for (let i = 0; i < head.children; i += 2) {
      const name = this.#head();
      if (name.kind !== 'str') throw new SyntaxError(`a key that is not a string (${name.kind})`);
      const key = JSON.stringify(this.#take(name.payload).toString('utf8'));
      parts.push(`${key}:${this.value(depth)}`);
    }
    return `{${parts.join(',')}}`;
  }

  #integer(head: ObjectHead): string {
    const first = this.#bytes[this.at - 1]!;
    if (head.payload === 0) return String(first < 0x80 ? first : first - 0x100);
    const digits = this.#take(head.payload);
    const signed = first >= 0xd0;
    if (head.payload === 8) return String(signed ? digits.readBigInt64BE() : digits.readBigUInt64BE());
    return String(signed ? digits.readIntBE(0, head.payload) : digits.readUIntBE(0, head.payload));
  }

  #float(head: ObjectHead): string {
    const digits = this.#take(head.payload);
    const value = head.payload === 4 ? digits.readFloatBE() : digits.readDoubleBE();
    if (!Number.isFinite(value)) throw new SyntaxError(`the number ${value}`);
    return JSON.stringify(value);
  }

  #head(): ObjectHead {
    if (this.at >= this.#bytes.length) throw new SyntaxError('the value ends early');
    const length = headBytes(this.#bytes[this.at]!);
    if (this.at + length > this.#bytes.length) throw new SyntaxError('the value ends early');
    const head = decodeHead(this.#bytes, this.at);
    if (head === null) throw new SyntaxError('an extension type');
    this.at += head.bytes;
    return head;
  }

  #take(length: number): Buffer {
    if (this.at + length > this.#bytes.length) throw new SyntaxError('the value ends early');
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }
}
