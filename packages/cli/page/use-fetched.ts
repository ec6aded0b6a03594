/**
 * Fetches something from the server, and again when its name changes. The last answer stays until the next one arrives.
 */
import { useEffect, useState } from 'preact/hooks';

export interface Fetched<T> {
  readonly got: T | null;
  readonly fault: Error | null;
}

/** `name` must contain everything that the answer depends on. */
export function useFetched<T>(name: string, ask: (signal: AbortSignal) => Promise<T>): Fetched<T> {
  const [fetched, setFetched] = useState<Fetched<T>>({ got: null, fault: null });
  useEffect(() => {
    const abort = new AbortController();
    ask(abort.signal).then(
      (got) => {
        if (!abort.signal.aborted) setFetched({ got, fault: null });
      },
      (fault: Error) => {
        if (!abort.signal.aborted) setFetched(({ got }) => ({ got, fault }));
      },
    );
    return () => abort.abort();
  }, [name]);
  return fetched;
}
