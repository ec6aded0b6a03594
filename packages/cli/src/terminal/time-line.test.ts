import { expect, test } from 'vitest';
import { timeLine } from './time-line.js';

const work = { samples: 3000, bytes: 6e6, seconds: 1.5, isResumed: false, next: undefined };

test('the line shows the duration, the rate and the next command', () => {
  expect(timeLine({ ...work, next: 'shardtool bench a' })).toBe(
    'Took 1.5 s (2,000 samples/s, 4.0 MB/s). Next: shardtool bench a',
  );
  expect(timeLine(work)).toBe('Took 1.5 s (2,000 samples/s, 4.0 MB/s).');
  expect(timeLine({ ...work, seconds: 75.4 })).toBe('Took 75 s (40 samples/s, 80 kB/s).');
});

test('work of an earlier run is not counted in a rate', () => {
  expect(timeLine({ ...work, isResumed: true, next: 'shardtool bench a' })).toBe('Took 1.5 s. Next: shardtool bench a');
});

test('a location with control characters cannot write to the terminal', () => {
  expect(timeLine({ ...work, next: 'shardtool bench \u001b[1m' })).not.toContain('\u001b');
});
