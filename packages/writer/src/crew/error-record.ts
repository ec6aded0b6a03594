import * as formatErrors from '@shardtool/format';
import * as writerErrors from '../errors.js';

/** An error as it travels between threads: cloning would keep neither its class nor its fields. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** The error's own fields: where the trouble is, a system error's code. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: ErrorRecord | undefined;
}

/** Takes an error apart in the thread where it was thrown. */
export function recordError(error: unknown): ErrorRecord {
  if (!(error instanceof Error)) {
    return { name: 'Error', message: String(error), stack: undefined, fields: {}, cause: undefined };
  }
  const { name, message, stack, cause } = error;
  return { name, message, stack, fields: { ...error }, cause: cause === undefined ? undefined : recordError(cause) };
}

type ErrorClass = new (fields: object, message: string, options?: { cause?: unknown }) => Error;

/** Puts an error together again, with its class where it is one of shardtool's. */
export function reviveError(record: ErrorRecord): Error {
  const cause = record.cause && reviveError(record.cause);
  const known = Object.entries({ ...formatErrors, ...writerErrors }).find(
    ([name, value]) => name === record.name && typeof value === 'function' && value.prototype instanceof Error,
  );
  const error = known
    ? new (known[1] as unknown as ErrorClass)(record.fields, record.message, { cause })
    : Object.assign(new Error(record.message, { cause }), record.fields, { name: record.name });
  if (record.stack !== undefined) error.stack = record.stack;
  return error;
}
