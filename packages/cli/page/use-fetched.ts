/** Something that the server is asked for, anew where what decides it changes; the last answer stays until the next is there. */
import { useEffect, useState } from 'preact/hooks';

export interface Fetched<T> {
  readonly got: T | null;
  readonly fault: Error | null;
}

/** `name` says all that the answer depends on. */
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
