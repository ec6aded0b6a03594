import type { Source } from '../../source.js';
import type { SamplePosition } from '../layout.js';
import { walkFile } from '../walk-file.js';
import { SampleWalk } from './walk.js';

/** Yields the samples of a msgpack shard in their order. What stands before damage comes before the error about it. */
export function samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  return walkFile(source, new SampleWalk({ shard: source.location, start: 0, end: source.size }));
}
