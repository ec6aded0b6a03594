/**
 * Something that can be read at any position. All reading goes through this one function, whatever stands behind it.
 */
export interface Source {
  /** The file's path or URL, for messages; without secrets. */
  readonly location: string;
  /** Size in bytes when it was opened. */
  readonly size: number;
  /** What changes when the content does. Undefined before the first answer of a server, and if the storage does not say. */
  readonly version?: string | undefined;
  /**
   * Fills `target` (at most) with the bytes from `offset` on and returns how many there were: fewer than
   * `target.length` only where the file ends. `target` may lie in shared memory. Many reads may be under way at once.
   */
  readAt(offset: number, target: Uint8Array, signal?: AbortSignal): Promise<number>;
  /**
   * The same without a turn of the event loop, which costs ten times what a short read of a cached page does. Only
   * files on this machine have it; for reads of a few KiB.
   */
  readNow?(offset: number, target: Uint8Array): number;
  /** Opens another file of the same folder, as this one was opened. */
  sibling?(name: string): Promise<Source>;
  close(): Promise<void>;
}

/** One name in a storage. */
export interface Entry {
  /** Below the storage's location, folders separated by `/`. */
  readonly name: string;
  readonly size: number;
  /** Changes when the content does: an ETag, or time and size. */
  readonly version: string;
  /** When it was last changed, in milliseconds since 1970; undefined where the storage does not say. */
  readonly modifiedMs?: number | undefined;
}

/** What is known of a file before it is opened: it is not asked for then, and a file that differs is an error. */
export interface Expected {
  readonly size?: number | undefined;
  readonly version?: string | undefined;
  /** When it was last changed, in milliseconds since 1970. Servers say it in whole seconds, so parts of one do not count. */
  readonly modifiedMs?: number | undefined;
  /** Which end is read first, where the size is not known: one request then brings both. */
  readonly first?: 'start' | 'end';
  /** How much comes with that request, in bytes. */
  readonly firstBytes?: number;
}

/** What reads cost here, for those who plan them. */
export interface ReadCosts {
  /** Bytes between two wanted stretches that are rather read along than skipped. */
  readonly gapBytes: number;
  /** A longer read is better cut in pieces that run side by side. */
  readonly maxReadBytes: number;
  /** Reads that may be under way at once. */
  readonly parallel: number;
}

export type Content = Uint8Array | { readonly file: string };

export interface PutOptions {
  /**
   * Throws `FileExistsError` where there is a file of that name. It is looked for first, and the store is given the
   * condition, too: one that does not know it may replace a file that comes between the two.
   */
  readonly ifAbsent?: boolean;
  readonly signal?: AbortSignal;
}

/** What a storage has done so far. */
export interface StorageCounts {
  requests: number;
  /** Bytes that arrived, those of failed tries included. */
  bytes: number;
  retries: number;
  hedges: number;
}

/** A place with names in it. Names are relative, with `/` between folders. */
export interface Storage {
  /** Without secrets, for messages. */
  readonly location: string;
  readonly costs: ReadCosts;
  readonly counts: StorageCounts;
  /** Null where there is no file of that name. */
  entry(name: string, signal?: AbortSignal): Promise<Entry | null>;
  /** Files whose names begin with `prefix`, sorted; those in folders below only with `deep`. Throws where a server cannot. */
  list(prefix?: string, options?: { readonly deep?: boolean; readonly signal?: AbortSignal }): AsyncGenerator<Entry>;
  /** Throws `FileNotFoundError`, `FileChangedError`, `FileError`. */
  open(name: string, expected?: Expected): Promise<Source>;
  /** Whole or not at all; what was there before is replaced. */
  put(name: string, content: Content, options?: PutOptions): Promise<void>;
  /** Removes the file; one that is not there is no error. */
  remove(name: string, signal?: AbortSignal): Promise<void>;
  /** Only storages on this machine have it: what opens the file without this package. */
  localPath?(name: string): string;
}

/** One try that failed and is made again. */
export interface Retry {
  readonly location: string;
  readonly reason: string;
  readonly tries: number;
  readonly waitMs: number;
}

/** How remote places are asked. Everything is optional; what is left out comes from the environment. */
export interface StorageOptions {
  /** S3: another server than Amazon's (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL). */
  readonly endpointUrl?: string | undefined;
  /** S3: AWS_REGION, AWS_DEFAULT_REGION, else the bucket's own. */
  readonly region?: string | undefined;
  /** S3: requests carry no credentials, as public buckets allow (SHARDTOOL_UNSIGNED=1). */
  readonly unsigned?: boolean | undefined;
  /** S3: whoever reads pays (SHARDTOOL_REQUESTER_PAYS=1). */
  readonly requesterPays?: boolean | undefined;
}
