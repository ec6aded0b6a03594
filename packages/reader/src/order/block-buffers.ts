export interface BufferOptions {
  readonly streams: number;
  readonly worldSize: number;
  readonly blockSamples: number;
  /** Rows of this rank's batches. */
  readonly batchSize: number;
  readonly prefetchBatches: number;
}

/**
 * Returns the number of block buffers that one rank holds: one for each of its streams, one that is being read, and as
 * many as the samples in the batch slots fill, because a buffer is free only when its last sample is decoded.
 */
export function bufferCount({ streams, worldSize, blockSamples, batchSize, prefetchBatches }: BufferOptions): number {
  return streams / worldSize + 1 + Math.ceil((prefetchBatches * batchSize) / blockSamples);
}
