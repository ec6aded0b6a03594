import type { Source } from '../../source.js';
import type { SamplePosition } from '../layout.js';
import { walkFile } from '../walk-file.js';
import { SampleWalk } from './walk.js';

/** Yields the samples of a msgpack shard in order. Samples before damage are yielded before the error is thrown. */
export function samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  return walkFile(source, new SampleWalk({ shard: source.location, start: 0, end: source.size }));
}
