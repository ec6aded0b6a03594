/** The worker's side of a {@link WorkerPool}: takes jobs until it is asked to end. */
import { parentPort } from 'node:worker_threads';
import { recordError } from '@shardtool/base';
import { type Answer, END, FREE } from './worker-pool.js';

/** Passes every message to `take` until the main thread ends the worker. */
export function takeMessages<Message>(take: (message: Message) => void): void {
  parentPort!.on('message', (message: Message | typeof END) => {
    if (message === END) endThread();
    else take(message);
  });
}

/** Ends the thread when it has nothing left to do. In Deno, where ports cannot be closed, it ends the thread at once: all requests are answered by then. */
function endThread(): void {
  if (typeof parentPort!.close === 'function') parentPort!.close();
  else process.exit();
}

/** Settles when all jobs received so far are answered. */
let answered: Promise<void> = Promise.resolve();

/** Runs a job and sends its result, or its error, after the answers to earlier jobs. */
export function answer<Result>(work: () => Result | Promise<Result>): void {
  const reply = replyOf(work);
  answered = answered.then(async () => parentPort!.postMessage(await reply));
}

async function replyOf<Result>(work: () => Result | Promise<Result>): Promise<Answer<Result>> {
  try {
    return { result: await work() };
  } catch (error) {
    return { error: recordError(error) };
  }
}

/** Reports that the current job only waits for the disk, so the next can be sent. */
export function sayFree(): void {
  parentPort!.postMessage(FREE);
}
