export interface BufferOptions {
  readonly streams: number;
  readonly worldSize: number;
  readonly blockSamples: number;
  /** Rows of this rank's batches. */
  readonly batchSize: number;
  readonly prefetchBatches: number;
}

/**
 * Blocks that one rank holds at once: one for each of its streams and one that is being read; and since a block's memory
 * is free only when its last sample is decoded, as many as the samples in the batch slots fill.
 */
export function bufferCount({ streams, worldSize, blockSamples, batchSize, prefetchBatches }: BufferOptions): number {
  return streams / worldSize + 1 + Math.ceil((prefetchBatches * batchSize) / blockSamples);
}
