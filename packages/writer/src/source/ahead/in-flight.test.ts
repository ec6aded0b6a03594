import { afterEach, expect, test, vi } from 'vitest';
import { flightSetting, InFlight } from './in-flight.js';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Runs calls against a server in virtual time: `capacity` calls a ms at most, `latency` ms a call. Gives the limit at the end. */
function simulate(phases: readonly { latency: number; capacity: number; ms: number }[]): number[] {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const flight = new InFlight(flightSetting(undefined, 1000));
  const limits: number[] = [];
  for (const { latency, capacity, ms } of phases) {
    for (const end = now + ms; now < end; ) {
      now += 1 / Math.min(flight.limit / latency, capacity);
      void flight.run('x', (done) => done(null));
    }
    limits.push(flight.limit);
  }
  flight.close();
  return limits;
}

test('more are in flight where that gives a higher rate, and no more than that where it does not', () => {
  const [slow, slower, overloaded] = simulate([
    { latency: 3, capacity: 20, ms: 3000 },
    { latency: 100, capacity: 20, ms: 8000 },
    { latency: 3, capacity: 0.5, ms: 20_000 },
  ]);
  expect(slow).toBeLessThanOrEqual(128);
  expect(slower).toBe(256);
  expect(overloaded).toBeLessThanOrEqual(32);
});

test('a number that was given stays', () => {
  const flight = new InFlight(flightSetting(7, 1000));
  for (let i = 0; i < 10_000; i++) void flight.run('x', (done) => done(null));
  expect(flight.limit).toBe(7);
  flight.close();
});

test('a call without an answer fails by the name of its file, and its answer later does no harm', async () => {
  const flight = new InFlight(flightSetting(2, 20));
  let answer = (): void => undefined;
  const call = flight.run<void>('/mnt/a.jpg', (done) => {
    answer = () => done(null);
  });
  await expect(call).rejects.toMatchObject({ name: 'SourceTimeoutError', path: '/mnt/a.jpg' });
  expect(flight.live).toBe(1);
  answer();
  expect(flight.live).toBe(0);
  flight.close();
});
