import * as formatErrors from '../errors.js';
import { Sentence, type SentencePart } from '../sentence.js';

/** An error as it is sent between threads. Cloning would lose its class and its fields. */
export interface ErrorRecord {
  readonly name: string;
  /** Names of the classes that its class extends, the nearest first. The receiver uses the first one that it knows. */
  readonly bases: readonly string[];
  readonly message: string;
  /** The parts of a message that names options. */
  readonly sentence?: readonly SentencePart[];
  readonly stack: string | undefined;
  /** The error's own fields, such as its location, or the code of a system error. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: ErrorRecord | undefined;
}

/** Converts an error to plain data, in the thread that threw it. */
export function recordError(error: unknown): ErrorRecord {
  if (!(error instanceof Error)) {
    return { name: 'Error', bases: [], message: String(error), stack: undefined, fields: {}, cause: undefined };
  }
  const { name, message, stack, cause } = error;
  const bases = error instanceof formatErrors.ShardtoolError ? formatErrors.kindsOf(error).slice(1) : basesOf(error);
  const said = formatErrors.sentenceOf(error);
  return {
    name,
    bases,
    message,
    ...(said instanceof Sentence && {
      sentence: said.parts.map((part) => (typeof part === 'string' ? part : { ...part })),
    }),
    stack,
    fields: { ...error },
    cause: cause === undefined ? undefined : recordError(cause),
  };
}

function basesOf(error: Error): string[] {
  const names: string[] = [];
  let known = Object.getPrototypeOf(error.constructor) as { readonly name?: string } | null;
  for (; typeof known === 'function' && known.name !== ''; known = Object.getPrototypeOf(known))
    names.push(known.name!);
  return names;
}

/** Classes of errors by name, in an object that may also contain other exports of a module. */
export type ErrorClasses = Readonly<Record<string, unknown>>;

type ErrorClass = new (fields: object, message: string, options?: { cause?: unknown }) => Error;

/**
 * Creates an error from a record. It gets its class if that is a class of this package, of `more` or of the language,
 * found by name; otherwise the nearest class that it extends.
 */
export function reviveError(record: ErrorRecord, more: ErrorClasses = {}): Error {
  const cause = record.cause && reviveError(record.cause, more);
  const classes: ErrorClasses = { ...formatErrors, ...more };
  const own = [record.name, ...record.bases].map((name) => classes[name]).find(isErrorClass);
  const known = (globalThis as ErrorClasses)[record.name];
  const error =
    own !== undefined
      ? new own(record.fields, record.message, { cause })
      : new (isErrorClass(known) ? (known as unknown as ErrorConstructor) : Error)(record.message, { cause });
  if (record.sentence !== undefined) formatErrors.setSentence(error, new Sentence(record.sentence));
  // Some classes compose their message themselves.
  return Object.assign(error, record.fields, {
    message: record.message,
    ...(record.name !== error.name && { name: record.name }),
    ...(record.stack !== undefined && { stack: record.stack }),
  });
}

function isErrorClass(value: unknown): value is ErrorClass {
  return typeof value === 'function' && value.prototype instanceof Error;
}
