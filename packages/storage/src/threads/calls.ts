/** What threads that read are asked for, and what they answer. */
import type { Expected, Retry, StorageCounts, StorageOptions } from '../storage.js';
import type { Failed } from './failed.js';

interface OfFile {
  readonly location: string;
}

/** A read of a file of a server. Targets lie in shared memory. */
export interface RemoteCall extends OfFile {
  readonly expected: Expected | undefined;
  readonly options: StorageOptions;
  readonly offset: number;
  readonly target: Uint8Array;
}

/** Each thread knows so many files of servers. */
export const OPEN_SOURCES = 16;

/** Of a file of this machine. */
export type LocalCall =
  | (OfFile & { readonly kind: 'open' })
  /** Of an open one. */
  | (OfFile & { readonly kind: 'read'; readonly file: number; readonly offset: number; readonly target: Uint8Array });

/** A call with the number that its answer has. */
export type Numbered<Call> = Call & { readonly id: number };

/** There is nothing more to do. */
export const END = 'end';

export type ReadAnswer =
  | {
      readonly kind: 'done';
      readonly id: number;
      readonly value: ReadValue;
      /** What servers were asked for meanwhile. */
      readonly counts?: StorageCounts;
    }
  | Failed
  | { readonly kind: 'retry'; readonly retry: Retry }
  /** It has loaded what it needs. */
  | { readonly kind: 'ready' };

/** What a read gave. */
export interface ReadBytes {
  readonly got: number;
  /** Of the remote file that the bytes are of. */
  readonly version?: string | undefined;
}

/** A file of this machine, by the number that all threads of the process know it by. */
export interface OpenedFile {
  readonly file: number;
  readonly size: number;
}

/** Bytes that were read into a target; a file that was opened. */
export type ReadValue = ReadBytes | OpenedFile;
