/** `setTimeout` of `node:timers/promises` for browsers. */

export function setTimeout<T>(
  ms: number,
  value?: T,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve(value);
    }, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

export function setImmediate<T>(value?: T): Promise<T | undefined> {
  return setTimeout(0, value);
}
