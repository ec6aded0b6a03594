import { expect, test } from 'vitest';
import { ReadsInFlight } from './reads-in-flight.js';

/** Reads that end on command. */
function reads(inFlight: ReadsInFlight) {
  const ends: (() => void)[] = [];
  let underWay = 0;
  const begin = (bytes: number): Promise<void> =>
    inFlight.run(bytes, async () => {
      underWay++;
      await new Promise<void>((resolve) => ends.push(resolve));
      underWay--;
    });
  return { begin, ends, underWay: () => underWay };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('at most the limit of reads run at a time, and each read that ends starts the next one', async () => {
  const inFlight = new ReadsInFlight(3, 3);
  const { begin, ends, underWay } = reads(inFlight);
  const all = Array.from({ length: 8 }, () => begin(1 << 20));
  await settled();
  expect(underWay()).toBe(3);
  for (let done = 0; done < 8; done++) {
    ends[done]!();
    await settled();
    expect(underWay()).toBe(Math.min(3, 7 - done));
  }
  await Promise.all(all);
});

test('four times as many short reads run at a time', async () => {
  const inFlight = new ReadsInFlight(3, 3);
  const { begin, ends, underWay } = reads(inFlight);
  const all = Array.from({ length: 20 }, () => begin(1000));
  await settled();
  expect(underWay()).toBe(12);
  while (underWay() > 0) {
    for (const end of ends.splice(0)) end();
    await settled();
  }
  await Promise.all(all);
});

test('a read that fails lets the next read start', async () => {
  const inFlight = new ReadsInFlight(1, 1);
  await expect(inFlight.run(1 << 20, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  await inFlight.run(1 << 20, async () => {});
});
