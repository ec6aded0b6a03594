import type { Source } from '../source.js';
import { FileWindow } from './bytes/file-window.js';

/** A walk over the headers of a shard, without I/O: it reports what it needs next, and takes it in pieces of any size. */
export interface HeaderWalk<Found> {
  /** Offset at which the next window has to begin. */
  readonly position: number;
  /** The minimum length of that window, in bytes. */
  readonly needed: number;
  readonly done: boolean;
  /** Walks as far as `window` reaches and appends what it found. Throws at the first error. */
  advance(window: Buffer, found: Found[]): void;
}

/** How many items are yielded at once, or slightly more. */
export const BATCH = 256;

/** Yields what a walk finds in a file, in order, some hundreds at a time. Throws the errors of the walk, and `FileError`. */
export function walkFile<Found>(source: Source, walk: HeaderWalk<Found>): AsyncGenerator<readonly Found[]> {
  // If bytes are fetched remotely, a caller that reads payloads needs them before they leave the cache.
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
 * Yields what `fill` adds to an array, `most` at a time or slightly more; `fill` itself yields now and then. Items
 * found before an error are yielded before it is thrown.
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
