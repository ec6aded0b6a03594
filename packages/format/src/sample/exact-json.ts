/**
 * JSON in which no number changes its value: `JSON.parse` rounds integers beyond 2^53, and `JSON.stringify` writes
 * infinite numbers as null.
 */

/** Matches the beginning of an integer that may exceed the range of a number. A match inside a string only costs time. */
const LONG_INTEGER = /(?:^|[:[,\s])-?\d{16,}(?![\d.eE])/;

/** Like `JSON.parse`, but integers beyond 2^53 become bigints: a number holds only some of them exactly. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!LONG_INTEGER.test(text)) return value;
  try {
    return new ExactReader(text).value();
  } catch (cause) {
    // The reader recurses once per level; `JSON.parse` does not.
    if (cause instanceof RangeError) throw new SyntaxError('it is nested too deep', { cause });
    throw cause;
  }
}

/** A parser for JSON with large integers. */
class ExactReader {
  readonly #text: string;
  readonly #token = /[\s,:]*("(?:[^"\\]|\\.)*"|[[\]{}]|[^\s,:[\]{}"]+)/y;

  constructor(text: string) {
    this.#text = text;
  }

  value(token = this.#next()): unknown {
    if (token === '[') {
      const items: unknown[] = [];
      for (let item = this.#next(); item !== ']'; item = this.#next()) items.push(this.value(item));
      return items;
    }
    if (token === '{') {
      const members: [string, unknown][] = [];
      for (let name = this.#next(); name !== '}'; name = this.#next()) members.push([JSON.parse(name), this.value()]);
      return Object.fromEntries(members);
    }
    const value: unknown = JSON.parse(token);
    return /^-?\d+$/.test(token) && !Number.isSafeInteger(value) ? BigInt(token) : value;
  }

  #next(): string {
    return this.#token.exec(this.#text)![1]!;
  }
}

/**
 * Like `JSON.stringify`, but bigints become their digits, and infinite numbers become `1e999`, which every JSON parser
 * reads as infinity.
 */
export function jsonText(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (value === Number.POSITIVE_INFINITY) return '1e999';
  if (value === Number.NEGATIVE_INFINITY) return '-1e999';
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (ArrayBuffer.isView(value)) return jsonText(Array.from(value as Uint8Array, (item) => item));
  if (value instanceof Date) return JSON.stringify(value);
  if (Array.isArray(value)) {
    return value.every(isPlain) ? JSON.stringify(value) : `[${value.map((item) => jsonText(item ?? null)).join(',')}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`).join(',')}}`;
}

/** Whether all values are plain. Lists of labels are long, so those of plain values go to the engine's own serializer. */
function isPlain(value: unknown): boolean {
  return typeof value === 'number'
    ? Math.abs(value) !== Number.POSITIVE_INFINITY
    : typeof value === 'string' || value === null;
}
