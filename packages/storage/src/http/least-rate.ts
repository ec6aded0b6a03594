/** An answer of which less comes in this time is asked for again: a path that is stuck may let a byte through now and then. */
export const WINDOW_MS = 15_000;
/** So little that a slow line is not taken for a stuck one, although it is shared by many reads. */
export const LEAST_BYTES = 16 << 10;

/** Calls `onSlow` when less than {@link LEAST_BYTES} have come in a window. Returns what ends the watch. */
export function watchRate(received: () => number, onSlow: () => void): () => void {
  let before = received();
  const timer = setInterval(() => {
    const now = received();
    if (now - before < LEAST_BYTES) onSlow();
    before = now;
  }, WINDOW_MS);
  return () => clearInterval(timer);
}
