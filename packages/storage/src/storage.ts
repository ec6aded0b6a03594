/**
 * A file that can be read at any position. All layouts read through this interface, whatever the storage is.
 */
export interface Source {
  /** Path or URL of the file for messages, without secrets. */
  readonly location: string;
  /** Size in bytes when it was opened. */
  readonly size: number;
  /** Version of the content. Undefined before the first answer of a server, and if the storage reports none. */
  readonly version?: string | undefined;
  /** Compression of the last answer of a server, such as `br`, although requests ask for none. */
  readonly compression?: string | undefined;
  /**
   * Fills `target` with the bytes from `offset` and returns their number, which is less than `target.length` only at
   * the end of the file. `target` may be in shared memory. Reads may run concurrently.
   */
  readAt(offset: number, target: Uint8Array, signal?: AbortSignal): Promise<number>;
  /**
   * Like `read`, but synchronous: a turn of the event loop costs ten times as much as a short read of a cached page.
   * Only files on this machine have it. Use it for reads of a few KiB.
   */
  readNow?(offset: number, target: Uint8Array): number;
  /** Opens another file of the same folder with the same options. */
  sibling?(name: string): Promise<Source>;
  close(): Promise<void>;
}

/** One name in a storage. */
export interface Entry {
  /** Relative to the storage's location, with `/` between folders. */
  readonly name: string;
  readonly size: number;
  /** Changes when the content does: an ETag, or time and size. */
  readonly version: string;
  /** Time of the last change, in milliseconds since 1970; undefined if the storage does not report it. */
  readonly modifiedMs?: number | undefined;
}

/** Facts about a file that are known before it is opened. They are not requested, and a file that differs is an error. */
export interface Expected {
  readonly size?: number | undefined;
  readonly version?: string | undefined;
  /** Time of the last change, in milliseconds since 1970. Servers report whole seconds, so fractions are ignored. */
  readonly modifiedMs?: number | undefined;
  /** End of the file that is read first if the size is not known: one request then returns both. */
  readonly first?: 'start' | 'end';
  /** Number of bytes of that first read. */
  readonly firstBytes?: number;
}

/** Costs of reads, for planning them. */
export interface ReadCosts {
  /** Largest gap between two needed ranges that is read with them instead of being skipped, in bytes. */
  readonly gapBytes: number;
  /** A longer read is faster if it is cut into pieces that run concurrently. */
  readonly maxReadBytes: number;
  /** Maximum number of concurrent reads. */
  readonly parallel: number;
}

export type Content = Uint8Array | { readonly file: string };

export interface PutOptions {
  /**
   * Throws `FileExistsError` if a file of that name exists. This is checked first, and the write has the same
   * condition. A store that ignores the condition may replace a file that appears between the two.
   */
  readonly ifAbsent?: boolean;
  /**
   * Throws `FileChangedError` unless the file has this version, in the form of {@link Entry}. A server checks it
   * together with the write. For a local folder, the caller must hold a lock.
   */
  readonly ifVersion?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Counts of the requests of a storage so far. */
export interface StorageCounts {
  requests: number;
  /** Number of bytes received, including failed tries. */
  bytes: number;
  retries: number;
  hedges: number;
}

/** A folder, bucket or server with files. Names are relative, with `/` between folders. */
export interface Storage {
  /** Path or URL for messages, without secrets. */
  readonly location: string;
  readonly costs: ReadCosts;
  readonly counts: StorageCounts;
  /** Returns null if there is no file of that name. */
  entry(name: string, signal?: AbortSignal): Promise<Entry | null>;
  /** Files whose names begin with `prefix`, sorted. With `deep`, also those in subfolders. Throws if the server cannot list. */
  list(prefix?: string, options?: { readonly deep?: boolean; readonly signal?: AbortSignal }): AsyncGenerator<Entry>;
  /** Throws `FileNotFoundError`, `FileChangedError`, `FileError`. */
  open(name: string, expected?: Expected): Promise<Source>;
  /** Writes a file completely or not at all. An existing file is replaced. */
  put(name: string, content: Content, options?: PutOptions): Promise<void>;
  /** Removes the file. A missing file is not an error. */
  remove(name: string, signal?: AbortSignal): Promise<void>;
  /** Path that opens the file without this package. Only storages on this machine have it. */
  localPath?(name: string): string;
}

/** A failed try that is repeated. */
export interface Retry {
  readonly location: string;
  readonly reason: string;
  readonly tries: number;
  readonly waitMs: number;
}

/** Options for remote storage. Every option is optional; the default comes from the environment. */
export interface StorageOptions {
  /** S3: another server than Amazon's (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL). */
  readonly endpointUrl?: string | undefined;
  /** S3: region. Default: AWS_REGION, AWS_DEFAULT_REGION, or the region that the bucket reports. */
  readonly region?: string | undefined;
  /** S3: requests carry no credentials, as public buckets allow (SHARDTOOL_UNSIGNED=1). */
  readonly unsigned?: boolean | undefined;
  /** S3: the reader pays for requests (SHARDTOOL_REQUESTER_PAYS=1). */
  readonly requesterPays?: boolean | undefined;
}
