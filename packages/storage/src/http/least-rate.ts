/** Time in which an answer must bring {@link LEAST_BYTES}, or it is requested again: a stuck path may pass a byte now and then. */
export const WINDOW_MS = 15_000;
/** Low enough for a slow line that many reads share. */
export const LEAST_BYTES = 16 << 10;

/** Calls `onSlow` when less than {@link LEAST_BYTES} have come in a window. Returns a function that ends the watch. */
export function watchRate(received: () => number, onSlow: () => void): () => void {
  let before = received();
  const timer = setInterval(() => {
    const now = received();
    if (now - before < LEAST_BYTES) onSlow();
    before = now;
  }, WINDOW_MS);
  return () => clearInterval(timer);
}
