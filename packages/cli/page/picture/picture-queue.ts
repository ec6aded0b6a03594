/**
 * Queue of pictures to fetch: a few at a time, in the order of the requests. Pictures that are no longer visible are
 * removed.
 */
import { fetchPicture } from '../api.js';

/** Browsers open six connections to a server. One is reserved for rows. */
const IN_FLIGHT = 5;
/** After this many milliseconds without fast scrolling, visible pictures are fetched. */
export const PAUSE_MS = 80;

interface Waiting {
  readonly url: string;
  readonly abort: AbortController;
  done(blob: Blob): void;
  failed(error: Error): void;
}

/** Pictures that the user has opened. They have priority over pictures of the grid. */
const urgent = new Set<Waiting>();
const waiting = new Set<Waiting>();
let inFlight = 0;
/** Timer that is set while the user scrolls fast. */
let paused: number | null = null;

/** Calls back once. The returned function withdraws the request. */
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

/**
 * Call this while the user scrolls fast. Nothing is fetched until that ends, because visible pictures disappear at
 * once.
 */
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

/**
 * Resolves when no picture is being fetched, at the latest after `mostMs` milliseconds. For work that can wait until
 * the user sees pictures.
 */
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
