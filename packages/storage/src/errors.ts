import { sentence } from './visible.js';

/** Where the trouble is. `offset` is in bytes from the start of the shard. */
export interface Whereabouts {
  readonly shard?: string | undefined;
  readonly key?: string | undefined;
  readonly offset?: number | undefined;
  readonly path?: string | undefined;
}

/**
 * The base of every error that shardtool throws on purpose. The message is one sentence with the remedy, fit for a terminal;
 * `key` and `path` are exact.
 */
export class ShardtoolError extends Error implements Whereabouts {
  readonly shard?: string | undefined;
  readonly key?: string | undefined;
  readonly offset?: number | undefined;
  readonly path?: string | undefined;

  constructor(where: Whereabouts, message: string, options?: { cause?: unknown }) {
    super(sentence(message), options);
    this.name = new.target.name;
    this.shard = where.shard;
    this.key = where.key;
    this.offset = where.offset;
    this.path = where.path;
  }
}

/** A caller asked for something that is not allowed: an option, a flag, a value. */
export class OptionError extends ShardtoolError {}

/** A file could not be opened, read or written. `cause` has the system's own error. */
export class FileError extends ShardtoolError {}

/** There is no file of that name. */
export class NoSuchFileError extends FileError {}

/** There is a file of that name already, and it was not to be replaced. */
export class FileExistsError extends FileError {}

/** A file is another one than when it was opened, or than the dataset says. */
export class FileChangedError extends FileError {}

/** A server refused a request for good. */
export class RefusedError extends FileError {
  /** HTTP status. */
  readonly status: number;

  constructor(where: Whereabouts & { status: number }, message: string, options?: { cause?: unknown }) {
    super(where, message, options);
    this.status = where.status;
  }
}
