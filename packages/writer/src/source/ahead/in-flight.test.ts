import { afterEach, expect, test, vi } from 'vitest';
import { flightSetting, InFlight } from './in-flight.js';

afterEach(() => {
  vi.restoreAllMocks();
});

/**
 * Simulates calls to a server in virtual time: at most `capacity` calls per ms, and `latency` ms per call. Returns the
 * final limit.
 */
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

test('the number of concurrent calls rises while that increases the rate, and no further', () => {
  const [slow, slower, overloaded] = simulate([
    { latency: 3, capacity: 20, ms: 3000 },
    { latency: 100, capacity: 20, ms: 8000 },
    { latency: 3, capacity: 0.5, ms: 20_000 },
  ]);
  expect(slow).toBeLessThanOrEqual(128);
  expect(slower).toBe(256);
  expect(overloaded).toBeLessThanOrEqual(32);
});

test('a fixed number of concurrent calls does not change', () => {
  const flight = new InFlight(flightSetting(7, 1000));
  for (let i = 0; i < 10_000; i++) void flight.run('x', (done) => done(null));
  expect(flight.limit).toBe(7);
  flight.close();
});

test('a call without an answer fails with the name of its file, and a late answer is ignored', async () => {
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
