import type { Source } from '../../source.js';
import { FileWindow } from '../file-window.js';
import type { SamplePosition } from '../layout.js';
import { SampleWalk } from './walk.js';

const BATCH_SAMPLES = 256;

/** Yields the samples of a msgpack shard in their order. What stands before damage comes before the error about it. */
export async function* samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  let batch: SamplePosition[] = [];
  try {
    const walk = new SampleWalk({ shard: source.location, start: 0, end: source.size });
    const file = new FileWindow(source);
    while (!walk.done) {
      walk.advance(await file.at(walk.position, walk.needed), batch);
      if (batch.length < BATCH_SAMPLES) continue;
      yield batch;
      batch = [];
    }
  } catch (error) {
    if (batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}
