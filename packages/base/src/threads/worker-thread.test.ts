import { expect, test } from 'vitest';
import { ShardtoolError, WorkerDiedError } from '../errors.js';
import { WorkerThread } from './worker-thread.js';

/** The reason why a thread with this program ends, and its messages before. */
function ended(program: string): Promise<{ reason: Error; messages: unknown[] }> {
  const script = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  const messages: unknown[] = [];
  return new Promise((resolve) => {
    new WorkerThread<unknown>({
      script,
      workerData: 'given',
      name: 'Worker 3',
      youngGenerationMb: 4,
      onMessage: (message) => messages.push(message),
      onEnd: (reason) => resolve({ reason, messages }),
    });
  });
}

test('a thread that ends with a shardtool error reports it; any other error is the cause of a WorkerDiedError', async () => {
  const foreseen = await ended(`
    const error = Object.assign(new Error('no disk'), { name: 'FileError', path: 'x' });
    throw error;`);
  expect(foreseen.reason).toBeInstanceOf(ShardtoolError);
  expect(foreseen.reason).toMatchObject({ name: 'FileError', message: 'no disk', path: 'x' });
  const { reason } = await ended("throw new TypeError('out of the blue')");
  expect(reason).toBeInstanceOf(WorkerDiedError);
  expect(reason.message).toBe('Worker 3 failed: out of the blue');
  expect(reason.cause).toBeInstanceOf(TypeError);
});

test('a thread that exits reports its exit code, after all messages that it sent before', async () => {
  const { reason, messages } = await ended(`
    import { parentPort, workerData } from 'node:worker_threads';
    for (let i = 0; i < 3; i++) parentPort.postMessage(workerData + i);
    process.exit(7);`);
  expect(reason).toBeInstanceOf(WorkerDiedError);
  expect(reason.message).toBe('Worker 3 ended before its work was done (exit code 7).');
  expect(messages).toEqual(['given0', 'given1', 'given2']);
});

test('a thread that does not end on request is terminated', async () => {
  const reasons: Error[] = [];
  const thread = new WorkerThread<unknown>({
    script: new URL('data:text/javascript,setInterval(() => {}, 1000)'),
    workerData: null,
    name: 'Worker 0',
    youngGenerationMb: 4,
    onMessage: () => {},
    onEnd: (reason) => reasons.push(reason),
  });
  await WorkerThread.whenEnded([thread]);
  expect(reasons).toHaveLength(1);
}, 20_000);
