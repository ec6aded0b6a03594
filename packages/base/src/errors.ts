import { toMessage } from './escape-controls.js';
import { Sentence, type Spelling, sentence } from './sentence.js';

/** Location of a fault. `offset` is in bytes from the start of the shard. */
export interface ErrorContext {
  readonly shard?: string | undefined;
  readonly key?: string | undefined;
  readonly offset?: number | undefined;
  readonly path?: string | undefined;
}

/**
 * Key of a property of errors: the kinds of the error's class and of the classes that it extends. All copies of the
 * package in a process share this symbol.
 */
const KINDS = Symbol.for('shardtool.kinds');

/**
 * Key of a property of errors whose message names options: the parts of the message. It is a symbol, so that JSON and
 * lists of fields omit it.
 */
const SENTENCE = Symbol.for('shardtool.sentence');

/**
 * The base of every error that shardtool throws on purpose. The message is one sentence with the remedy, fit for a
 * terminal, and names options as TypeScript spells them; {@link messageIn} spells them for another interface. `key` and
 * `path` are as in the dataset, without escapes. `instanceof` holds for errors of another copy of shardtool, too.
 */
export class ShardtoolError extends Error implements ErrorContext {
  /**
   * Name of the class, which its errors have as `name`. Minified code keeps it. A subclass that sets no kind inherits
   * that of its base.
   */
  static readonly kind: string = 'ShardtoolError';
  /** Stable code for programs. A FileNotFoundError has `ERR_SHARDTOOL_FILE_NOT_FOUND`. */
  readonly code: string;
  readonly shard?: string | undefined;
  readonly key?: string | undefined;
  readonly offset?: number | undefined;
  readonly path?: string | undefined;

  constructor(where: ErrorContext, message: string | Sentence, options?: { cause?: unknown }) {
    super(typeof message === 'string' ? toMessage(message) : message.toString(), options);
    if (message instanceof Sentence) setSentence(this, message);
    this.name = new.target.kind;
    this.code = codeOf(new.target.kind);
    this.shard = where.shard;
    this.key = where.key;
    this.offset = where.offset;
    this.path = where.path;
  }

  static override readonly [Symbol.hasInstance] = hasKind;

  /** Kind of this error's class, then of each class that it extends. */
  get [KINDS](): readonly string[] {
    const kinds = new Set<string>();
    let one = this.constructor as typeof ShardtoolError;
    for (; typeof one.kind === 'string'; one = Object.getPrototypeOf(one)) kinds.add(one.kind);
    return [...kinds];
  }

  /** Section of the documentation about errors of this class, within the repository. */
  get help(): string {
    return `docs/errors.md#${(this.constructor as typeof ShardtoolError).kind.toLowerCase()}`;
  }

  /** Names of the options that the message is about, as TypeScript spells them. */
  get options(): readonly string[] {
    const said = sentenceOf(this);
    return typeof said === 'string' ? [] : said.options;
  }

  /** All fields, the message, the section of the documentation and the message of `cause`, without the stack. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { message, cause, options, help } = this;
    const reason = cause === undefined ? {} : { cause: cause instanceof Error ? cause.message : String(cause) };
    const about = options.length === 0 ? {} : { options };
    return { ...(this as Readonly<Record<string, unknown>>), message, help, ...about, ...reason };
  }
}

/**
 * Returns the parts of an error's message, with the options that it names. Returns its message if it names none, or is
 * not an error of shardtool.
 */
export function sentenceOf(error: Error): string | Sentence {
  const said = (error as { readonly [SENTENCE]?: Sentence })[SENTENCE];
  // Another copy of shardtool has another class.
  return said === undefined ? error.message : new Sentence(said.parts);
}

/** The message of an error for an interface, which spells the options in it. */
export function messageIn(error: Error, spelling: Spelling): string {
  const said = sentenceOf(error);
  return typeof said === 'string' ? said : said.spelled(spelling);
}

/** Sets the message of an error, with the options that it names. */
export function setSentence(error: Error, said: Sentence): void {
  Object.defineProperty(error, SENTENCE, { value: said, configurable: true });
  error.message = said.toString();
}

/** Replaces the texts of an error's message by those of `replace`, in every interface. */
export function replaceTexts(error: Error, replace: (text: string) => string): void {
  const said = sentenceOf(error);
  if (typeof said === 'string') error.message = replace(said);
  else setSentence(error, new Sentence(said.parts.map((part) => (typeof part === 'string' ? replace(part) : part))));
}

/** Implements `instanceof` for errors: by prototype, or by kind if another copy of shardtool created the error. */
function hasKind(this: { readonly kind: string }, value: unknown): boolean {
  if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
  if (!Object.hasOwn(this, 'kind') || typeof value !== 'object' || value === null) return false;
  const kinds: unknown = (value as { readonly [KINDS]?: unknown })[KINDS];
  return Array.isArray(kinds) && kinds.includes(this.kind);
}

/** The kinds of an error's class and of those that it extends, the nearest first. */
export function kindsOf(error: ShardtoolError): readonly string[] {
  return error[KINDS];
}

function codeOf(kind: string): string {
  const words = kind.replace(/Error$/, '').replace(/(?<=[a-z])(?=[A-Z])/g, '_');
  return `ERR_SHARDTOOL_${words.toUpperCase()}`.replace('_SHARDTOOL_SHARDTOOL', '_SHARDTOOL');
}

/** A caller asked for something that is not allowed: an option, a flag, a value. */
export class OptionError extends ShardtoolError {
  static override readonly kind: string = 'OptionError';
}

/** A file could not be opened, read or written. `cause` has the system's own error. */
export class FileError extends ShardtoolError {
  static override readonly kind: string = 'FileError';
}

/** There is no file of that name. */
export class FileNotFoundError extends FileError {
  static override readonly kind: string = 'FileNotFoundError';
}

/** A file of that name already exists, and may not be replaced. */
export class FileExistsError extends FileError {
  static override readonly kind: string = 'FileExistsError';
}

/** A file changed after it was opened, or differs from the one that the dataset describes. */
export class FileChangedError extends FileError {
  static override readonly kind: string = 'FileChangedError';
}

/** A server refused a request, and a retry would not help. */
export class RequestRejectedError extends FileError {
  static override readonly kind: string = 'RequestRejectedError';

  /** HTTP status. */
  readonly status: number;

  constructor(where: ErrorContext & { status: number }, message: string | Sentence, options?: { cause?: unknown }) {
    super(where, message, options);
    this.status = where.status;
  }
}

/** The bytes of a shard are not valid in its layout: a wrong checksum, an impossible length, a malformed record. */
export class DamagedShardError extends ShardtoolError {
  static override readonly kind: string = 'DamagedShardError';
}

/** A shard is shorter than its own headers say. */
export class TruncatedShardError extends DamagedShardError {
  static override readonly kind: string = 'TruncatedShardError';
}

/** A shard holds an entry that is not a plain file: a link, a device, a sparse file. */
export class UnsupportedEntryError extends ShardtoolError {
  static override readonly kind: string = 'UnsupportedEntryError';
}

/** The name of an entry leads out of its folder, is not text, or would not be read back as the same key and field. */
export class EntryNameError extends ShardtoolError {
  static override readonly kind: string = 'EntryNameError';
}

/** A shard has the same key twice, or a sample the same field. `otherOffset` is the offset of the first one. */
export class DuplicateKeyError extends ShardtoolError {
  static override readonly kind: string = 'DuplicateKeyError';

  readonly otherOffset: number | undefined;

  constructor(where: ErrorContext & { otherOffset?: number }, message: string | Sentence) {
    super(where, message);
    this.otherOffset = where.otherOffset;
  }
}

/**
 * An image cannot be decoded: it is damaged, of an unsupported kind, or larger than allowed. Errors of codecs have
 * neither shard nor key, because codecs do not know them. `reason` is the message without shard and key.
 */
export class SampleDecodeError extends ShardtoolError {
  static override readonly kind: string = 'SampleDecodeError';

  readonly reason: string;

  constructor(where: ErrorContext, reason: string | Sentence, options?: { cause?: unknown }) {
    super(
      where,
      where.key === undefined ? reason : sentence`${where.shard ?? ''}: image "${where.key}" is bad: ${reason}`,
      options,
    );
    this.reason = String(reason);
  }
}

/** The index of a shard is missing a column, damaged, or not written by shardtool. */
export class ShardIndexError extends ShardtoolError {
  static override readonly kind: string = 'ShardIndexError';
}

/** A crop index is damaged, or was not written by shardtool. */
export class CropIndexError extends ShardtoolError {
  static override readonly kind: string = 'CropIndexError';
}

/** dataset.json is not what shardtool writes. */
export class ManifestError extends ShardtoolError {
  static override readonly kind: string = 'ManifestError';
}

/** A folder without dataset.json: the pack was interrupted, or the folder is not a dataset. */
export class UnfinishedPackError extends ShardtoolError {
  static override readonly kind: string = 'UnfinishedPackError';
}

/** A file was written by a newer shardtool. `found` is its version, `known` the newest that this one reads. */
export class VersionError extends ShardtoolError {
  static override readonly kind: string = 'VersionError';

  readonly found: number;
  readonly known: number;

  constructor(where: ErrorContext & { found: number; known: number }, message: string | Sentence) {
    super(where, message);
    this.found = where.found;
    this.known = where.known;
  }
}

/** Why an image's header cannot be used. */
export type ImageTrouble = 'empty' | 'not-an-image' | 'cut' | 'no-size' | 'too-large' | 'unsupported';

/** An image cannot be packed or decoded, because of its header. */
export class ImageError extends ShardtoolError {
  static override readonly kind: string = 'ImageError';

  readonly trouble: ImageTrouble;

  constructor(where: ErrorContext & { trouble: ImageTrouble }, message: string | Sentence) {
    super(where, message);
    this.trouble = where.trouble;
  }
}

/** A key is longer than the layout allows. Keys of LMDB have at most 511 bytes. */
export class KeyLengthError extends ShardtoolError {
  static override readonly kind: string = 'KeyLengthError';
}

/** A sample is too large. `bytes` is the size of all its fields together, `limit` the largest size that is allowed. */
export class SampleSizeError extends ShardtoolError {
  static override readonly kind: string = 'SampleSizeError';

  readonly bytes: number;
  readonly limit: number;

  constructor(where: ErrorContext & { bytes: number; limit: number }, message: string | Sentence) {
    super(where, message);
    this.bytes = where.bytes;
    this.limit = where.limit;
  }
}

/** Shardtool cannot read this kind of shard, such as an LMDB file with duplicate keys or of another version or machine. */
export class UnsupportedShardError extends ShardtoolError {
  static override readonly kind: string = 'UnsupportedShardError';
}

/** The bytes of a field differ from those that were packed. Checksums are unsigned numbers. */
export class SampleChecksumError extends ShardtoolError {
  static override readonly kind: string = 'SampleChecksumError';

  readonly field: string;
  readonly expected: number;
  readonly actual: number;

  constructor(where: ErrorContext & { field: string; expected: number; actual: number }, message: string | Sentence) {
    super(where, message);
    this.field = where.field;
    this.expected = where.expected;
    this.actual = where.actual;
  }
}

/** Written bytes differ from the bytes that were read: memory or a disk is faulty, or another process wrote to the same file. */
export class WriteCheckError extends ShardtoolError {
  static override readonly kind: string = 'WriteCheckError';
}

/** A field is not a NumPy array, or has an unsupported type. The message does not name shard and key. */
export class NpyError extends ShardtoolError {
  static override readonly kind: string = 'NpyError';
}

/** A worker thread ended before its work was done, or could not start. `cause` is the error that it threw, if any. */
export class WorkerDiedError extends ShardtoolError {
  static override readonly kind: string = 'WorkerDiedError';
}

/** A file of labels, files or classes has an invalid line. `line` counts from 1. */
export class LabelsError extends ShardtoolError {
  static override readonly kind: string = 'LabelsError';

  readonly line: number | undefined;

  constructor(
    where: ErrorContext & { line?: number | undefined },
    message: string | Sentence,
    options?: { cause?: unknown },
  ) {
    super(where, message, options);
    this.line = where.line;
  }
}
