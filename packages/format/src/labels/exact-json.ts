/**
 * JSON in which no number changes its value: `JSON.parse` rounds integers beyond 2^53, and `JSON.stringify` makes null of
 * what is infinite.
 */

/** The beginning of an integer that a number may not hold. Inside a string it costs time, and nothing else. */
const LONG_INTEGER = /(?:^|[:[,\s])-?\d{16,}(?![\d.eE])/;

/** As `JSON.parse`, but integers beyond 2^53 are bigints: numbers hold some of them exactly, and print none of them so. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!LONG_INTEGER.test(text)) return value;
  try {
    return new ExactReader(text).value();
  } catch (cause) {
    // A call for each level; `JSON.parse` needs none.
    if (cause instanceof RangeError) throw new SyntaxError('it is nested too deep', { cause });
    throw cause;
  }
}

/** Reads a text that is JSON. */
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

/** As `JSON.stringify`, but bigints are their digits, and infinite numbers are `1e999`, which every reader takes for infinite. */
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

/** Lists of labels are long: those of plain values are left to the engine. */
function isPlain(value: unknown): boolean {
  return typeof value === 'number'
    ? Math.abs(value) !== Number.POSITIVE_INFINITY
    : typeof value === 'string' || value === null;
}
