/** Time in which an answer must bring {@link LEAST_BYTES}, or it is requested again: a stuck path may pass a byte now and then. */
export const WINDOW_MS = 15_000;
/** Low enough for a slow line that many reads share. */
export const LEAST_BYTES = 16 << 10;

/**
 * The same for POST: while S3 puts the parts of an upload together, it sends a space now and then, for minutes if there are many
 * parts.
 */
export const POST_WINDOW_MS = 600_000;

/** Calls `onSlow` when less than {@link LEAST_BYTES} have come in a window. Returns a function that ends the watch. */
export function watchRate(received: () => number, windowMs: number, onSlow: () => void): () => void {
  let before = received();
  const timer = setInterval(() => {
    const now = received();
    if (now - before < LEAST_BYTES) onSlow();
    before = now;
  }, windowMs);
  return () => clearInterval(timer);
}
