/** The worker's side of a {@link WorkerPool}: takes jobs until it is asked to end. */
import { parentPort } from 'node:worker_threads';
import { recordError } from '@shardtool/base';
import { type Answer, END, FREE } from './worker-pool.js';

/** Hands every message to `take`, until the main thread wants no more. */
export function takeMessages<Message>(take: (message: Message) => void): void {
  parentPort!.on('message', (message: Message | typeof END) => {
    if (message === END) parentPort!.close();
    else take(message);
  });
}

/** Settled when all jobs are answered that came so far. */
let answered: Promise<void> = Promise.resolve();

/** Does a job and sends its result, or the error that ended it, when those that came before are answered. */
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

/** The job that came last is as good as done: another may be sent. */
export function sayFree(): void {
  parentPort!.postMessage(FREE);
}
