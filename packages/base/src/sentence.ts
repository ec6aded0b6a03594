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

/** A name that is not an option, such as that of a transform step or of its parameter, as in TypeScript: `randomIoUCrop`. */
export interface NameReference {
  readonly codeName: string;
}

/** A part of a sentence: plain data, which can be sent between threads. */
export type SentencePart = string | OptionReference | NameReference;

/** How an interface spells the options and names in a sentence. */
export type Spelling = (reference: OptionReference | NameReference) => string;

/** For programs in TypeScript: `"maxShardBytes"`, `randomIoUCrop`. */
export const inTypeScript: Spelling = (reference) => {
  if (isName(reference)) return reference.codeName;
  const { option, isQuoted, value, expression } = reference;
  return expression === undefined ? withValue(option, isQuoted, value, ': ') : `${option}: ${expression}`;
};

/** For programs in Python: `"max_shard_bytes"`, `random_iou_crop`. */
export const inPython: Spelling = (reference) => {
  if (isName(reference)) return lowered(reference.codeName.replace('IoU', 'Iou'), '_');
  const { option, isQuoted, value } = reference;
  return withValue(lowered(option, '_'), isQuoted, value, '=');
};

/** Flags whose names differ from those of their options. */
const FLAGS: Readonly<Record<string, string>> = {
  'features.image': 'image-feature',
  'features.label': 'label-feature',
  'features.key': 'key-feature',
};

/** For the command line: `--max-shard-bytes`, and `randomIoUCrop` as in a JSON file. */
export const onCommandLine: Spelling = (reference) => {
  if (isName(reference)) return reference.codeName;
  const { option, value } = reference;
  return `--${FLAGS[option] ?? lowered(option, '-')}${value === undefined ? '' : ` ${value}`}`;
};

function isName(reference: OptionReference | NameReference): reference is NameReference {
  return 'codeName' in reference;
}

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
    return [...new Set(this.parts.flatMap((part) => (typeof part === 'string' || isName(part) ? [] : [part.option])))];
  }

  toString(): string {
    return this.spelled(inTypeScript);
  }
}

/**
 * Tag of a template for a message: ``sentence`The option ${option('resize')} must be ...` ``. Sentences within it keep their
 * options; any other value becomes text. Words in camelCase of the template itself, such as `toDtype`, are treated like
 * those of {@link codeName}.
 */
export function sentence(texts: TemplateStringsArray, ...values: readonly unknown[]): Sentence {
  const parts = texts.flatMap((text, i) => [...withCodeNames(text).parts, ...partsOf(values, i)]);
  return new Sentence(parts);
}

function partsOf(values: readonly unknown[], i: number): readonly SentencePart[] {
  if (i >= values.length) return [];
  const value = values[i];
  if (value instanceof Sentence) return value.parts;
  return [isReference(value) ? value : String(value)];
}

function isReference(value: unknown): value is OptionReference | NameReference {
  return value instanceof Reference || value instanceof Name;
}

/** Like {@link Reference}, for a name that is not an option. */
class Name implements NameReference {
  readonly codeName: string;

  constructor(codeName: string) {
    this.codeName = codeName;
  }

  toString(): string {
    return this.codeName;
  }
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

/** A reference to a name that is not an option, by its name in TypeScript. */
export function codeName(name: string): NameReference {
  return new Name(name);
}

/** A word in camelCase. */
const CODE_NAME = /\b([a-z]+(?:[A-Z][a-zA-Z0-9]*)+)\b/;

/**
 * A text as a sentence in which words in camelCase are references like {@link codeName}. If the text contains data of the
 * user, `isKnown` tells names from data.
 */
export function withCodeNames(text: string, isKnown: (word: string) => boolean = () => true): Sentence {
  // Every second part is what the pattern has matched.
  const parts = text.split(CODE_NAME).map((part, i) => (i % 2 === 1 && isKnown(part) ? codeName(part) : part));
  return new Sentence(parts.filter((part) => part !== ''));
}
