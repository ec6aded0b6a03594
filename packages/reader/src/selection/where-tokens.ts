import { OptionError, optionName, sentence } from '@shardtool/base';

/** A `where` expression is invalid. `column` counts from 1. */
export class WhereError extends OptionError {
  static override readonly kind: string = 'WhereError';

  readonly column: number;

  readonly #place: readonly [text: string, at: number, message: string];

  /** `option` is the option that contains the expression. */
  constructor(text: string, at: number, message: string, option = 'where') {
    super(
      {},
      sentence`${optionName(option)}, position ${at + 1} of "${text}": ${message}${/\?$/.test(message) ? '' : '.'}`,
    );
    this.column = at + 1;
    this.#place = [text, at, message];
  }

  /** The same error for an expression that was given as another option. */
  ofOption(option: string): WhereError {
    return new WhereError(...this.#place, option);
  }
}

/** A constant of an expression. */
export type Literal = string | number | boolean | null;

export type Token =
  | { readonly kind: 'literal'; readonly value: Literal; readonly at: number }
  | { readonly kind: 'name'; readonly name: string; readonly at: number }
  /** Operators, brackets, commas, and the words and, or, not, in. */
  | { readonly kind: 'symbol'; readonly symbol: string; readonly at: number }
  | { readonly kind: 'end'; readonly at: number };

const SPACE = /\s*/y;
const NUMBER = /-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;
const NAME = /[\p{L}_][\p{L}\p{N}_.]*/uy;
const SYMBOL = /==|!=|<=|>=|[=<>(),]/y;
const WORDS = new Set(['and', 'or', 'not', 'in']);
const CONSTANTS = new Map<string, Literal>([
  ['true', true],
  ['false', false],
  ['null', null],
]);

/**
 * Splits an expression into tokens; the last one is `end`. Strings have single or double quotes. Column names that are
 * not plain words have backticks. To include the quote character itself, write it twice. Keywords are recognised in
 * upper and lower case.
 */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = skip(SPACE, text, 0); at < text.length; at = skip(SPACE, text, at)) {
    const { token, end } = tokenAt(text, at);
    tokens.push(token);
    at = end;
  }
  tokens.push({ kind: 'end', at: text.length });
  return tokens;
}

function tokenAt(text: string, at: number): { token: Token; end: number } {
  const quote = text[at]!;
  if (quote === '"' || quote === "'" || quote === '`') {
    const { value, end } = quoted(text, at);
    return { token: quote === '`' ? { kind: 'name', name: value, at } : { kind: 'literal', value, at }, end };
  }
  let end = skip(SYMBOL, text, at);
  if (end > at) return { token: { kind: 'symbol', symbol: text.slice(at, end), at }, end };
  end = skip(NUMBER, text, at);
  if (end > at) return { token: { kind: 'literal', value: Number(text.slice(at, end)), at }, end };
  end = skip(NAME, text, at);
  if (end > at) return { token: wordToken(text.slice(at, end), at), end };
  throw new WhereError(text, at, `"${String.fromCodePoint(text.codePointAt(at)!)}" is not understood`);
}

function wordToken(name: string, at: number): Token {
  const lower = name.toLowerCase();
  if (WORDS.has(lower)) return { kind: 'symbol', symbol: lower, at };
  const value = CONSTANTS.get(lower);
  return value === undefined ? { kind: 'name', name, at } : { kind: 'literal', value, at };
}

function quoted(text: string, at: number): { value: string; end: number } {
  const quote = text[at]!;
  let value = '';
  for (let from = at + 1; ; ) {
    const close = text.indexOf(quote, from);
    if (close < 0) throw new WhereError(text, at, `the quote ${quote} is not closed`);
    value += text.slice(from, close);
    if (text[close + 1] !== quote) return { value, end: close + 1 };
    value += quote;
    from = close + 2;
  }
}

/** Returns the end of a sticky pattern's match at an offset, or the offset if it does not match. */
function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
