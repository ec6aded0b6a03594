import { toMessage } from './escape-controls.js';

/** An option that a sentence is about, by its name in TypeScript: `maxShardBytes`, or `annotations.maxBoxes` of an option with parts. */
export interface OptionReference {
  readonly option: string;
  /** False if the option is written without quotation marks: `seed is -1`. */
  readonly isQuoted: boolean;
  /** A value to which the message tells the user to set the option. */
  readonly value?: string;
  /** The same value in TypeScript, if it is not text there: `{ index: 2, of: 16 }`. */
  readonly expression?: string;
}

/** A part of a sentence: plain data, which can be sent between threads. */
export type SentencePart = string | OptionReference;

/** How an interface spells the options in a sentence. */
export type Spelling = (reference: OptionReference) => string;

/** For programs in TypeScript: `"maxShardBytes"`. */
export const inTypeScript: Spelling = ({ option, isQuoted, value, expression }) =>
  expression === undefined ? withValue(option, isQuoted, value, ': ') : `${option}: ${expression}`;

/** For programs in Python: `"max_shard_bytes"`. */
export const inPython: Spelling = ({ option, isQuoted, value }) =>
  withValue(lowered(option, '_'), isQuoted, value, '=');

/** Flags whose names differ from those of their options. */
const FLAGS: Readonly<Record<string, string>> = {
  'features.image': 'image-feature',
  'features.label': 'label-feature',
  'features.key': 'key-feature',
};

/** For the command line: `--max-shard-bytes`. */
export const onCommandLine: Spelling = ({ option, value }) =>
  `--${FLAGS[option] ?? lowered(option, '-')}${value === undefined ? '' : ` ${value}`}`;

function withValue(name: string, isQuoted: boolean, value: string | undefined, between: string): string {
  if (value !== undefined) return `${name}${between}"${value}"`;
  return isQuoted ? `"${name}"` : name;
}

function lowered(name: string, joint: string): string {
  return name.replace(/[A-Z]/g, (letter) => joint + letter.toLowerCase());
}

/** A sentence for people in which the names of options are not yet spelled. As text it is spelled for TypeScript. */
export class Sentence {
  readonly parts: readonly SentencePart[];

  constructor(parts: readonly SentencePart[]) {
    this.parts = parts;
  }

  /** The text for an interface, safe to print: see {@link toMessage}. */
  spelled(spelling: Spelling): string {
    return toMessage(this.parts.map((part) => (typeof part === 'string' ? part : spelling(part))).join(''));
  }

  /** Names of the options that the sentence is about, each once. */
  get options(): readonly string[] {
    return [...new Set(this.parts.flatMap((part) => (typeof part === 'string' ? [] : [part.option])))];
  }

  toString(): string {
    return this.spelled(inTypeScript);
  }
}

/**
 * Tag of a template for a message: ``sentence`The option ${option('resize')} must be ...` ``. Sentences within it keep their
 * options; any other value becomes text.
 */
export function sentence(texts: TemplateStringsArray, ...values: readonly unknown[]): Sentence {
  const parts = texts.flatMap((text, i) => [...(text === '' ? [] : [text]), ...partsOf(values, i)]);
  return new Sentence(parts);
}

function partsOf(values: readonly unknown[], i: number): readonly SentencePart[] {
  if (i >= values.length) return [];
  const value = values[i];
  if (value instanceof Sentence) return value.parts;
  return [isReference(value) ? value : String(value)];
}

function isReference(value: unknown): value is OptionReference {
  return value instanceof Reference;
}

/** A value that is not a {@link Sentence} becomes text; a plain template spells options for TypeScript. */
class Reference implements OptionReference {
  readonly option: string;
  readonly isQuoted: boolean;
  declare readonly value?: string;
  declare readonly expression?: string;

  constructor(option: string, isQuoted: boolean, value?: string, expression?: string) {
    this.option = option;
    this.isQuoted = isQuoted;
    if (value !== undefined) this.value = value;
    if (expression !== undefined) this.expression = expression;
  }

  toString(): string {
    return inTypeScript(this);
  }
}

/**
 * A reference to an option, in quotation marks except on the command line; with `value`, what to set it to, and with
 * `expression`, how TypeScript spells that value.
 */
export function option(name: string, value?: string, expression?: string): OptionReference {
  return new Reference(name, true, value, expression);
}

/** A reference to an option that is written without quotation marks. */
export function optionName(name: string): OptionReference {
  return new Reference(name, false);
}
