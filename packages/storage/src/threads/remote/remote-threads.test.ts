import { beforeEach, expect, test, vi } from 'vitest';
import { RemoteThreads } from './remote-threads.js';

/** Threads that never answer. */
const started = vi.hoisted(() => ({ count: 0 }));
vi.mock('node:worker_threads', async (original) => ({
  ...(await original<typeof import('node:worker_threads')>()),
  Worker: class {
    constructor() {
      started.count++;
    }
    on(): void {}
    ref(): void {}
    unref(): void {}
    postMessage(): void {}
  },
}));
beforeEach(() => {
  started.count = 0;
});

const file = { location: 'http://host/000000.tar', expected: undefined, options: undefined };

/** Reads `count` times, and returns how many threads have been started. */
function threadsAfter(threads: RemoteThreads, count: number, bytes: number): number {
  for (let i = 0; i < count; i++) void threads.read(file, i * bytes, new Uint8Array(new SharedArrayBuffer(bytes)));
  return started.count;
}

test('one thread makes the 64 short reads of a first batch, and more reads start a second thread', () => {
  const threads = new RemoteThreads({ most: 2, each: 16 });
  expect(threadsAfter(threads, 64, 50_000)).toBe(1);
  expect(threadsAfter(threads, 1, 50_000)).toBe(2);
  expect(threadsAfter(threads, 500, 50_000)).toBe(2);
});

test('long reads start a second thread earlier than short ones', () => {
  const threads = new RemoteThreads({ most: 2, each: 16 });
  expect(threadsAfter(threads, 16, 1 << 20)).toBe(1);
  expect(threadsAfter(threads, 1, 1 << 20)).toBe(2);
});
