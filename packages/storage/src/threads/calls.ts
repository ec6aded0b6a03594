/** Messages between the main thread and reading threads. */
import type { Expected, Retry, StorageCounts, StorageOptions } from '../storage.js';
import type { Failed } from './failed.js';

interface OfFile {
  readonly location: string;
}

/** A read of a remote file. The target is in shared memory. */
export interface RemoteCall extends OfFile {
  readonly expected: Expected | undefined;
  readonly options: StorageOptions;
  readonly offset: number;
  readonly target: Uint8Array;
}

/** Number of remote files that a thread keeps open. */
export const OPEN_SOURCES = 16;

/** A call for a file of this machine. */
export type LocalCall =
  | (OfFile & { readonly kind: 'open' })
  /** Reads from an open file. */
  | (OfFile & { readonly kind: 'read'; readonly file: number; readonly offset: number; readonly target: Uint8Array });

/** A call with an id, which its answer repeats. */
export type Numbered<Call> = Call & { readonly id: number };

/** Sent to a thread after its last call. */
export const END = 'end';

export type ReadAnswer =
  | {
      readonly kind: 'done';
      readonly id: number;
      readonly value: ReadValue;
      /** Counts of requests since the last answer. */
      readonly counts?: StorageCounts;
    }
  | Failed
  | { readonly kind: 'retry'; readonly retry: Retry }
  /** The thread has loaded its code. */
  | { readonly kind: 'ready' };

/** Result of a read. */
export interface ReadBytes {
  readonly got: number;
  /** Version of the remote file that the bytes come from. */
  readonly version?: string | undefined;
}

/** An open file of this machine, with the file descriptor that all threads of the process share. */
export interface OpenedFile {
  readonly file: number;
  readonly size: number;
}

/** Result of a call: of a read, or of opening a file. */
export type ReadValue = ReadBytes | OpenedFile;
