import {
  FileChangedError,
  FileError,
  FileNotFoundError,
  OptionError,
  RequestRejectedError,
  ShardtoolError,
} from '@shardtool/base';

/** An error as it is sent from a thread or process. */
export interface Failed {
  readonly kind: 'failed';
  readonly id: number;
  readonly name: string;
  readonly message: string;
  readonly path: string | undefined;
  readonly offset: number | undefined;
}

/** Returns the answer that reports an error. */
export function failed(id: number, error: unknown): Failed {
  const { name, message, path, offset } = error as FileError;
  return { kind: 'failed', id, name, message, path, offset };
}

const KINDS = { FileError, FileNotFoundError, FileChangedError, OptionError, ShardtoolError };

/** Returns an error of the same class as the one that was thrown in the thread or process. */
export function revived({ name, message, path, offset }: Failed): Error {
  if (name === 'RequestRejectedError') return new RequestRejectedError({ path, offset, status: 0 }, message);
  const Kind = KINDS[name as keyof typeof KINDS] ?? FileError;
  return new Kind({ path, offset }, message);
}
