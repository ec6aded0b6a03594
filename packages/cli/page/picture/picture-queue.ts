/** Pictures on their way: a few at a time in the order in which they were asked for, and none that has scrolled away. */
import { fetchPicture } from '../api.js';

/** A browser has six connections to a server; one stays free for rows. */
const IN_FLIGHT = 5;
/** Nobody has scrolled fast for so long: what shows now is looked at. */
export const PAUSE_MS = 80;

interface Waiting {
  readonly url: string;
  readonly abort: AbortController;
  done(blob: Blob): void;
  failed(error: Error): void;
}

/** Those that a person looks at, before those of the grid. */
const urgent = new Set<Waiting>();
const waiting = new Set<Waiting>();
let inFlight = 0;
/** Set while somebody scrolls fast. */
let paused: number | null = null;

/** Calls back once, unless the function that it returns is called before. */
export function wantPicture(
  url: string,
  done: (blob: Blob) => void,
  failed: (error: Error) => void,
  isFirst: boolean,
): () => void {
  const want: Waiting = { url, abort: new AbortController(), done, failed };
  (isFirst ? urgent : waiting).add(want);
  next();
  return () => {
    urgent.delete(want);
    waiting.delete(want);
    want.abort.abort();
  };
}

/** Somebody scrolls so fast that what shows now is gone at once: nothing of it is asked for until that ends. */
export function hurry(): void {
  clearTimeout(paused ?? undefined);
  paused = setTimeout(() => {
    paused = null;
    next();
  }, PAUSE_MS) as unknown as number;
}

export function isHurried(): boolean {
  return paused !== null;
}

/** Resolves when no picture is on its way, or after so many milliseconds: for what can wait until a person sees something. */
export async function whenPicturesStand(mostMs: number): Promise<void> {
  const end = performance.now() + mostMs;
  do await new Promise((resolve) => setTimeout(resolve, 50));
  while ((inFlight > 0 || waiting.size > 0) && performance.now() < end);
}

function next(): void {
  while (inFlight < IN_FLIGHT) {
    const [first] = urgent.size > 0 || paused !== null ? urgent : waiting;
    if (first === undefined) return;
    urgent.delete(first);
    waiting.delete(first);
    inFlight++;
    fetchPicture(first.url, first.abort.signal)
      .then(
        (blob) => {
          if (!first.abort.signal.aborted) first.done(blob);
        },
        (error: Error) => {
          if (!first.abort.signal.aborted) first.failed(error);
        },
      )
      .finally(() => {
        inFlight--;
        next();
      });
  }
}
