/**
 * The result of `work`; or, as soon as the signal aborts, an error: its reason. The work then runs on by itself, and `discard` is
 * called with what it gives.
 */
export async function abortable<T>(
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
  discard: (result: T) => unknown = () => undefined,
): Promise<T> {
  if (signal === undefined) return work();
  signal.throwIfAborted();
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  const result = work();
  try {
    return await Promise.race([result, aborted]);
  } catch (error) {
    // The work may have failed itself: then there is nothing to discard.
    result.then(discard).catch(() => undefined);
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
