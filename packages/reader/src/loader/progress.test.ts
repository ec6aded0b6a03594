import { expect, test } from 'vitest';
import { Progress } from './progress.js';

test('a run begins where its options say, and moves on with each batch', () => {
  const progress = new Progress();
  expect([progress.next, progress.now]).toEqual([null, null]);
  progress.begin({ epoch: 2, position: 0 }, false);
  progress.begin({ epoch: 9, position: 0 }, false);
  expect(progress.startLoop()).toEqual({ epoch: 2, position: 0 });
  progress.take({ epoch: 2, position: 64 });
  expect(progress.now).toEqual({ epoch: 2, position: 64 });
  // However the loop ends, the next one gives the next epoch.
  expect(progress.startLoop()).toEqual({ epoch: 3, position: 0 });
});

test('setting the epoch of a state keeps its position, and setting another epoch begins that, before or after the options are known', () => {
  for (const isEarly of [true, false]) {
    for (const epoch of [1, 4]) {
      const progress = new Progress();
      if (isEarly) progress.setEpoch(epoch);
      progress.begin({ epoch: 1, position: 32 }, false);
      if (!isEarly) progress.setEpoch(epoch);
      expect(progress.startLoop()).toEqual({ epoch, position: epoch === 1 ? 32 : 0 });
    }
  }
});

test('after the last batch of an epoch the next epoch follows; setting the old epoch gives an empty loop', () => {
  const progress = new Progress();
  progress.begin({ epoch: 1, position: 96 }, true);
  expect(progress.next).toEqual({ epoch: 2, position: 0 });
  progress.setEpoch(1);
  expect(progress.next).toEqual({ epoch: 1, position: 96 });
  expect(progress.startLoop()).toBeNull();
  expect(progress.startLoop()).toEqual({ epoch: 2, position: 0 });
  progress.take({ epoch: 2, position: 96 });
  progress.setEpoch(1);
  expect(progress.startLoop()).toEqual({ epoch: 1, position: 0 });
});

test('batches that are prepared ahead do not count until they are delivered', () => {
  const progress = new Progress({ isAhead: true });
  progress.begin({ epoch: 0, position: 0 }, false);
  const begun = progress.startLoop();
  for (const position of [32, 64, 96]) progress.take({ epoch: 0, position });
  expect([progress.taken, progress.now]).toEqual([{ epoch: 0, position: 96 }, begun]);
  progress.deliver({ epoch: 0, position: 32 });
  expect(progress.now).toEqual({ epoch: 0, position: 32 });
  expect(progress.startLoop()).toEqual({ epoch: 1, position: 0 });
});

test('a state that is taken after another epoch was set has that epoch', () => {
  for (const isAhead of [true, false]) {
    const progress = new Progress({ isAhead });
    progress.begin({ epoch: 0, position: 0 }, false);
    progress.startLoop();
    for (const step of ['take', 'deliver'] as const) progress[step]({ epoch: 0, position: 96 });
    progress.setEpoch(1);
    expect(progress.now).toEqual({ epoch: 0, position: 96 });
    for (const epoch of [5, 0, 1]) {
      progress.setEpoch(epoch);
      expect(progress.now).toEqual({ epoch, position: 0 });
    }
    expect(progress.startLoop()).toEqual({ epoch: 1, position: 0 });
    progress.deliver({ epoch: 1, position: 32 });
    expect(progress.now).toEqual({ epoch: 1, position: 32 });
  }
});
