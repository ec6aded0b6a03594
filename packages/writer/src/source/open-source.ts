import { isRemote, type StorageOptions } from '@shardtool/storage';
import { flightSetting, InFlight } from './ahead/in-flight.js';
import { mayHang } from './folder/mount.js';
import { isSlow } from './folder/probe.js';
import { findMetadata } from './labels/metadata.js';
import { rootOf, sourceKind } from './source-kinds.js';

/** The source of a pack while it is open. The caller must close it. */
export interface OpenSource {
  /** The location as the caller gave it. */
  readonly location: string;
  /** Prefix of the path of every file, with a trailing "/". */
  readonly root: string;
  /** Options for requests to a remote source. */
  readonly storage: StorageOptions | undefined;
  /** Makes many calls to the source concurrently; null if each worker reads one file at a time. */
  readonly flight: InFlight | null;
  /** File in the source that contains labels; null if there is none, or if it was not searched for. */
  readonly metadata: string | null;
  close(): void;
}

/** Options that opening a source uses. */
export interface SourceOptions {
  readonly storage?: StorageOptions | undefined;
  /** Number of concurrent requests; undefined adjusts it to the source. */
  readonly inFlight: number | undefined;
  /** Seconds without an answer after which a local source counts as unreachable. */
  readonly ioTimeout: number;
  /** Number of worker threads that read from the source too. */
  readonly workers: number;
  readonly exclude: readonly string[];
  /** True if the caller named the labels, so that none are searched for in the source. */
  readonly hasLabels: boolean;
}

/**
 * Opens the source of a pack. With `isAhead` many files are read concurrently. Throws SourceError unless it is a folder
 * or a remote location, `SourceTimeoutError` if it does not answer, and LabelsError if it contains two labels files.
 */
export async function openSource(location: string, options: SourceOptions, isAhead: boolean): Promise<OpenSource> {
  const { storage, inFlight, ioTimeout, workers, exclude, hasLabels } = options;
  // Requests to a bucket have their own timeouts.
  const timeoutMs = isRemote(location) ? Number.POSITIVE_INFINITY : ioTimeout * 1000;
  const flight = isAhead ? new InFlight(flightSetting(inFlight, timeoutMs, workers + 1)) : null;
  try {
    await sourceKind(location).check(location, flight);
    const metadata = hasLabels ? null : await findMetadata(location, exclude, flight);
    return { location, root: rootOf(location), storage, flight, metadata, close: () => flight?.close() };
  } catch (error) {
    flight?.close();
    throw error;
  }
}

/**
 * True if many files of a local source should be read concurrently: if it may not answer, or is slow. `inFlight` is the
 * number of concurrent requests that the caller requested.
 */
export function isReadAhead(location: string, inFlight: number | undefined): boolean {
  return mayHang(location) || (inFlight === undefined ? isSlow(location) : inFlight > 1);
}
