/** The worker's side of a {@link WorkerPool}: takes jobs until it is asked to end. */
import { parentPort } from 'node:worker_threads';
import { recordError } from '@shardtool/format';
import { type Answer, END } from './worker-pool.js';

/** Hands every message to `take`, until the main thread wants no more. */
export function takeMessages<Message>(take: (message: Message) => void): void {
  parentPort!.on('message', (message: Message | typeof END) => {
    if (message === END) parentPort!.close();
    else take(message);
  });
}

/** Does a job and sends its result, or the error that ended it. */
export async function answer<Result>(work: () => Result | Promise<Result>): Promise<void> {
  let reply: Answer<Result>;
  try {
    reply = { result: await work() };
  } catch (error) {
    reply = { error: recordError(error) };
  }
  parentPort!.postMessage(reply);
}
