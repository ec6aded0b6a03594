import type { ReadCosts } from '@shardtool/storage';

/** How shards are read from one kind of storage. */
export interface ReadProfile extends ReadCosts {
  /** Reads have a latency that is worth hiding: many of them run at once, in threads. */
  readonly isSlow: boolean;
  /** Number of concurrent reads to begin with. It then grows up to `parallel`. */
  readonly startReads: number;
  /** Number of concurrent reads of one block. */
  readonly blockReads: number;
  /** Number of shards whose indexes are requested ahead: while a load is planned, and for the blocks to come. */
  readonly plannedIndexes: number;
  readonly plannedBlocks: number;
}

/** A disk of this machine. Long reads are cut into pieces that run concurrently. */
export const LOCAL: ReadProfile = {
  isSlow: false,
  gapBytes: 64 << 10,
  maxReadBytes: 4 << 20,
  parallel: 4,
  startReads: 4,
  blockReads: 4,
  plannedIndexes: 0,
  plannedBlocks: 1,
};

/** A slow file system, such as a network mount. Each call has a latency, and each read takes many calls. */
export const SLOW: ReadProfile = {
  isSlow: true,
  gapBytes: 128 << 10,
  maxReadBytes: 1 << 20,
  parallel: 64,
  // At first many reads wait for their files to be opened.
  startReads: 24,
  blockReads: 32,
  plannedIndexes: 32,
  plannedBlocks: 64,
};

/** A server or bucket: each request has a latency. */
export const REMOTE: ReadProfile = {
  isSlow: true,
  gapBytes: 1 << 20,
  maxReadBytes: 8 << 20,
  parallel: 128,
  startReads: 16,
  blockReads: 32,
  plannedIndexes: 32,
  plannedBlocks: 64,
};

/** Threads that read from slow and remote storage. */
export const READING_THREADS = {
  /** Number of threads for remote reads. */
  remote: 2,
  /** Number of threads for slow files. Starting one costs as much CPU time as decoding a batch. */
  slow: 32,
  /**
   * Turns of remote reads per thread before another thread is started. The short reads of a first batch take no more: one
   * thread is fast enough for them, and starting another takes CPU time that the first batch would wait for.
   */
  turnsPerThread: 16,
  /** Reads of slow files per thread before another thread is started. */
  readsPerThread: 32,
  /** Time in which a thread starts. Until then, running threads take as many reads as fit this time. */
  startMs: 200,
  /**
   * Amount of work that a thread gets at once, in milliseconds, because handing work over costs the main thread some
   * time.
   */
  handedMs: 10,
  /** Another thread for slow files is started when all have been busy for this time. */
  growMs: 60,
} as const;

/** How a slow file system is detected: by the time of the fastest of the first opens. */
export const DETECTION = {
  /** Opening a file on a local disk takes a tenth of this. */
  slowOpenMs: 0.8,
  opens: 3,
  /** Number of opens in the main thread that confirm a slow file system. */
  confirmingOpens: 10,
  /** If the first of these opens all take longer than this, the others are not made. */
  certainOpenMs: 5,
} as const;
