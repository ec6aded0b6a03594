/**
 * Errors of shardtool. One class a kind of trouble; each carries where the trouble is and one sentence that says what to do.
 */

/** Where the trouble is. `offset` is in bytes from the start of the shard. */
export interface Whereabouts {
  readonly shard?: string | undefined;
  readonly key?: string | undefined;
  readonly offset?: number | undefined;
  readonly path?: string | undefined;
}

/** The base of every error that shardtool throws on purpose. The message is one sentence with the remedy. */
export class ShardtoolError extends Error implements Whereabouts {
  readonly shard?: string | undefined;
  readonly key?: string | undefined;
  readonly offset?: number | undefined;
  readonly path?: string | undefined;

  constructor(where: Whereabouts, message: string, options?: { cause?: unknown }) {
    super(message, options);
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
