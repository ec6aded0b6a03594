import { type Literal, type Token, tokenize, WhereError } from './where-tokens.js';

export type Comparison = '=' | '!=' | '<' | '<=' | '>' | '>=';

/** `at` is the position in the text, for messages. */
export type Operand =
  | { readonly kind: 'column'; readonly name: string; readonly at: number }
  | { readonly kind: 'literal'; readonly value: Literal; readonly at: number };

export type Expression =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Expression[] }
  | { readonly kind: 'not'; readonly part: Expression }
  | { readonly kind: 'compare'; readonly operator: Comparison; readonly left: Operand; readonly right: Operand }
  | { readonly kind: 'in'; readonly operand: Operand; readonly values: readonly (Operand & { kind: 'literal' })[] }
  /** A boolean column, or a constant, by itself. */
  | { readonly kind: 'flag'; readonly operand: Operand };

const MAX_DEPTH = 200;

/**
 * Reads an expression over index columns:
 *
 *     or      := and ('or' and)*
 *     and     := not ('and' not)*
 *     not     := 'not' not | '(' or ')' | test
 *     test    := operand [ comparison operand | ['not'] 'in' '(' literal (',' literal)* ')' ]
 *     operand := column | number | string | true | false | null
 *
 * Comparisons are =, ==, !=, <, <=, >, >=. Throws {@link WhereError} with the position in the text.
 */
export function parseWhere(text: string): Expression {
  return new Parser(text).parse();
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokenize(text);
  }

  parse(): Expression {
    const expression = this.#or();
    if (this.#token.kind !== 'end') throw this.#expected('"and", "or" or the end');
    return expression;
  }

  #or(): Expression {
    return this.#chain('or', () => this.#chain('and', () => this.#not()));
  }

  #chain(word: 'and' | 'or', part: () => Expression): Expression {
    const parts = [part()];
    while (this.#accept(word)) parts.push(part());
    return parts.length === 1 ? parts[0]! : { kind: word, parts };
  }

  #not(): Expression {
    if (++this.#depth > MAX_DEPTH)
      throw new WhereError(this.#text, this.#token.at, 'too many nested brackets or "not"');
    try {
      if (this.#accept('not')) return { kind: 'not', part: this.#not() };
      if (!this.#accept('(')) return this.#test();
      const inner = this.#or();
      this.#expect(')');
      return inner;
    } finally {
      this.#depth--;
    }
  }

  #test(): Expression {
    const left = this.#operand();
    const operator = this.#comparison();
    if (operator !== null) return { kind: 'compare', operator, left, right: this.#operand() };
    if (this.#accept('in')) return this.#in(left);
    if (!this.#accept('not')) return { kind: 'flag', operand: left };
    this.#expect('in');
    return { kind: 'not', part: this.#in(left) };
  }

  #in(operand: Operand): Expression {
    this.#expect('(');
    const values: (Operand & { kind: 'literal' })[] = [];
    do {
      const token = this.#token;
      if (token.kind !== 'literal') throw this.#expected('a value');
      values.push(token);
      this.#next++;
    } while (this.#accept(','));
    this.#expect(')');
    return { kind: 'in', operand, values };
  }

  #operand(): Operand {
    const token = this.#token;
    if (token.kind !== 'literal' && token.kind !== 'name') throw this.#expected('a column or a value');
    this.#next++;
    return token.kind === 'name' ? { kind: 'column', name: token.name, at: token.at } : token;
  }

  #comparison(): Comparison | null {
    const token = this.#token;
    if (token.kind !== 'symbol' || !/[=<>]/.test(token.symbol)) return null;
    this.#next++;
    return token.symbol === '==' ? '=' : (token.symbol as Comparison);
  }

  get #token(): Token {
    return this.#tokens[this.#next]!;
  }

  #accept(symbol: string): boolean {
    const token = this.#token;
    if (token.kind !== 'symbol' || token.symbol !== symbol) return false;
    this.#next++;
    return true;
  }

  #expect(symbol: string): void {
    if (!this.#accept(symbol)) throw this.#expected(`"${symbol}"`);
  }

  #expected(what: string): WhereError {
    const token = this.#token;
    const end = this.#tokens[this.#next + 1]?.at ?? this.#text.length;
    const found = token.kind === 'end' ? 'the end' : `"${this.#text.slice(token.at, end).trim()}"`;
    return new WhereError(this.#text, token.at, `expected ${what}, found ${found}`);
  }
}
