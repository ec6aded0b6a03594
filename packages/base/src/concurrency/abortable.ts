/**
 * Returns the result of `work`. If the signal aborts first, rejects at once with the reason of the signal. The work is
 * not interrupted: `discard` receives its result later.
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
    // If the work itself fails, there is nothing to discard.
    result.then(discard).catch(() => undefined);
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
