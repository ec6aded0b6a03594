import type { Source } from '../source.js';
import { FileWindow } from './file-window.js';

/** A walk over the headers of a shard, without I/O: it says what it needs next, and takes it in whatever pieces it comes. */
export interface HeaderWalk<Found> {
  /** Where the next window has to begin. */
  readonly position: number;
  /** How many bytes it has to hold at least. */
  readonly needed: number;
  readonly done: boolean;
  /** Walks as far as `window` goes and adds what it found. Throws at the first thing that is not right. */
  advance(window: Buffer, found: Found[]): void;
}

/** So many come at a time, or a few more. */
export const BATCH = 256;

/** Yields what a walk finds in a file, in order, some hundreds at a time. Throws what the walk throws, and `FileError`. */
export function walkFile<Found>(source: Source, walk: HeaderWalk<Found>): AsyncGenerator<readonly Found[]> {
  // Whoever reads payloads of what is fetched from afar wants them before they are forgotten again.
  const most = source.readNow === undefined ? 1 : BATCH;
  return inBatches(most, async function* (found) {
    const file = new FileWindow(source);
    while (!walk.done) {
      const window = file.at(walk.position, walk.needed);
      walk.advance(window instanceof Promise ? await window : window, found);
      if (found.length >= most) yield;
    }
  });
}

/**
 * Yields what `fill` adds to an array, `most` at a time or a few more; it yields now and then itself. What was found before an
 * error comes before it.
 */
export async function* inBatches<Found>(
  most: number,
  fill: (found: Found[]) => AsyncIterable<void>,
): AsyncGenerator<readonly Found[]> {
  const found: Found[] = [];
  try {
    for await (const _ of fill(found)) if (found.length >= most) yield found.splice(0);
  } catch (error) {
    if (found.length > 0) yield found;
    throw error;
  }
  if (found.length > 0) yield found;
}
