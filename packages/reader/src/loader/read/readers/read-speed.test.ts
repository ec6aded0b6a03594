import { expect, test } from 'vitest';
import { ReadSpeed } from './read-speed.js';

/** A speed of reads that take `us` microseconds, while the page cache would take 100. */
function speedOf() {
  const none = { reads: 0, time: 0, cachedTime: 0 };
  const counted = { ...none };
  const takeReads = () => {
    const taken = { ...counted };
    Object.assign(counted, none);
    return taken;
  };
  const speed = new ReadSpeed({ takeReads });
  const read = (reads: number, us: number) => {
    counted.reads += reads;
    counted.time += reads * us;
    counted.cachedTime += reads * 100;
  };
  return { speed, read };
}

test('the speed is known after some reads, and stays known', () => {
  const { speed, read } = speedOf();
  read(63, 20);
  expect([speed.isKnown, speed.isSlow]).toEqual([false, false]);
  read(1, 20);
  expect([speed.isKnown, speed.isSlow]).toEqual([true, false]);
  speed.begin(false);
  expect([speed.isKnown, speed.isSlow]).toEqual([true, false]);
});

test('slow reads make the speed slow until an epoch was read from the page cache', () => {
  const { speed, read } = speedOf();
  read(64, 20);
  expect(speed.isSlow).toBe(false);
  read(400, 5000);
  expect(speed.isSlow).toBe(true);
  read(4000, 20);
  speed.begin(false);
  expect(speed.isSlow).toBe(true);
  speed.begin(true);
  expect(speed.isSlow).toBe(false);
});

test('if a batch is waiting, the speed is decided by the reads so far', () => {
  const { speed, read } = speedOf();
  read(3, 5000);
  expect(speed.isKnown).toBe(false);
  speed.settle();
  expect([speed.isKnown, speed.isSlow]).toEqual([true, true]);
  const none = speedOf().speed;
  none.settle();
  expect([none.isKnown, none.isSlow]).toEqual([true, false]);
});
