import { expect, test } from 'vitest';
import { parseContentRange } from './content-range.js';
import { retryAfterMs, TransientError, waitBefore, withRetries } from './retry.js';

test('ten attempts take longer than a server needs to restart, and less than three minutes', () => {
  const tries = Array.from({ length: 9 }, (_, i) => i + 2);
  const total = (random: number) => tries.reduce((sum, n) => sum + waitBefore(n, random), 0);
  expect(total(0)).toBeGreaterThan(20_000);
  expect(total(1)).toBeLessThan(180_000);
});

test('Retry-After is seconds or a date', () => {
  expect(retryAfterMs('3')).toBe(3000);
  expect(retryAfterMs('Thu, 01 Jan 1970 00:00:10 GMT', 4000)).toBe(6000);
  expect(retryAfterMs('soon')).toBeUndefined();
});

test('a Content-Range is parsed; any other value gives null', () => {
  expect(parseContentRange('bytes 0-99/1000')).toEqual({ from: 0, to: 100, size: 1000 });
  for (const wrong of [undefined, 'bytes */10', 'bytes 5-4/10', 'bytes 0-10/10', 'bytes 0-1/*'])
    expect(parseContentRange(wrong)).toBeNull();
});

test('a delay that is longer than the time limit ends the attempts, and the error states their number', async () => {
  const counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  const trying = withRetries(() => Promise.reject(new TransientError('no', { retryAfterMs: 200_000 })), {
    location: 'x',
    counts,
    gaveUp: (reason) => new Error(reason),
  });
  await expect(trying).rejects.toThrow(/^no; tried 1 time in 0.0 s$/);
});
