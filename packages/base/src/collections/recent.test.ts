import { expect, test } from 'vitest';
import { Recent } from './recent.js';

test('the least recently requested value is evicted and dropped', async () => {
  const dropped: string[] = [];
  let made = 0;
  const recent = new Recent<string, string>(
    2,
    async (key) => `${key}${made++}`,
    (value) => dropped.push(value),
  );
  await recent.get('a');
  await recent.get('b');
  await recent.get('a');
  await recent.get('c');
  await Promise.resolve();
  expect(dropped).toEqual(['b1']);
  expect(await recent.get('a')).toBe('a0');
});

test('concurrent requests for a key share one computation, and a failed computation is retried', async () => {
  let tries = 0;
  const recent = new Recent<string, number>(4, async () => {
    tries++;
    if (tries === 1) throw new Error('not now');
    return tries;
  });
  const both = await Promise.allSettled([recent.get('a'), recent.get('a')]);
  expect(both.map((result) => result.status)).toEqual(['rejected', 'rejected']);
  expect(tries).toBe(1);
  expect(await recent.get('a')).toBe(2);
});
