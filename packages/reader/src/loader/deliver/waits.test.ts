import { expect, test } from 'vitest';
import { NO_WAIT, splitByTaker, splitWait, sumOf, type Waited, WaitLog, WINDOW_SECONDS } from './waits.js';

const moments = {
  asked: 1000,
  issued: 1400,
  decoded: 1700,
  delivered: 1750,
  storageMs: 300,
  orderMs: 50,
  againMs: 0,
  transformShare: 0.25,
  startMs: 0,
};

test('a wait is split by its causes, whose times add up to it', () => {
  const waits = splitWait(moments);
  expect(waits).toEqual({ start: 0, storage: 300, order: 50, decode: 225, transform: 75, delivery: 100 });
  expect(sumOf(waits)).toBe(750);
});

test('time before the consumer requested a batch is not counted as a wait', () => {
  const early = { ...moments, issued: 200, decoded: 900, storageMs: -500, orderMs: -3 };
  expect(splitWait(early)).toEqual({ ...NO_WAIT, delivery: 750 });
  const decoding = { ...moments, issued: 200, decoded: 1600, storageMs: -500, orderMs: -3, transformShare: 0 };
  expect(splitWait(decoding)).toEqual({ ...NO_WAIT, decode: 600, delivery: 150 });
});

test('no cause is longer than the wait, and none is negative', () => {
  const long = splitWait({ ...moments, storageMs: 9999, orderMs: 9999, againMs: 9999, startMs: 7 });
  expect(long).toEqual({ start: 7, storage: 450, order: 0, decode: 225, transform: 75, delivery: 0 });
});

test('reading a batch once more counts as waiting for storage', () => {
  expect(splitWait({ ...moments, againMs: 40 })).toMatchObject({ storage: 340, delivery: 60 });
});

test('the wait for batches that a loop prepares ahead has the causes of that loop', () => {
  const taker = { ...NO_WAIT, storage: 30, decode: 10 };
  expect(splitByTaker(100, taker)).toEqual({ ...NO_WAIT, storage: 30, decode: 10, delivery: 60 });
  expect(splitByTaker(20, taker)).toEqual({ ...NO_WAIT, storage: 15, decode: 5 });
  expect(splitByTaker(5, NO_WAIT)).toEqual({ ...NO_WAIT, delivery: 5 });
});

function waited(parts: Partial<Waited>): Waited {
  return { epoch: 0, rows: 10, at: 0, consumerMs: 30, waits: { ...NO_WAIT, storage: 10 }, ...parts };
}

test('epochs and the last minute are summed up separately', () => {
  const log = new WaitLog();
  expect(log.report(0)).toMatchObject({
    epoch: null,
    previousEpoch: null,
    window: { batches: 0, waitShare: 0, cause: null },
  });
  log.add(waited({ at: 500 }));
  log.add(waited({ at: 1500, waits: { ...NO_WAIT, decode: 50 } }));
  log.add(waited({ epoch: 1, at: 61_000 }));
  const { epoch, previousEpoch, window } = log.report(61_000);
  expect(previousEpoch).toMatchObject({
    epoch: 0,
    batches: 2,
    samples: 20,
    waitMs: 60,
    consumerMs: 60,
    cause: 'decode',
  });
  expect(previousEpoch!.waitShare).toBe(0.5);
  expect(epoch).toMatchObject({ epoch: 1, batches: 1, waitShare: 0.25, cause: 'storage' });
  // Both batches of epoch 0 are more than a minute ago: seconds count as a whole.
  expect(window).toMatchObject({ batches: 1, samples: 10 });
  expect(log.report(500 + WINDOW_SECONDS * 3000).window.batches).toBe(0);
  expect(log.all).toMatchObject({ batches: 3, samples: 30, consumerMs: 90 });
});

test('seconds without batches are not part of the window, however long ago they were', () => {
  const log = new WaitLog();
  for (let second = 0; second < 300; second += 7) log.add(waited({ at: second * 1000 }));
  const within = Array.from({ length: 43 }, (_, i) => i * 7).filter((second) => second > 294 - WINDOW_SECONDS);
  expect(log.report(294_000).window.batches).toBe(within.length);
});
