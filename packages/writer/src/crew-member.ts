/** The worker's side of a crew: answers jobs, says how far it is, and stops when it is told to. */
import { parentPort, workerData } from 'node:worker_threads';
import { recordError } from './error-record.js';
import { type CrewData, CrewStopped } from './worker-crew.js';
import type { Answer } from './worker-pool.js';

const { worker, control, progress } = workerData as CrewData;

/** Counts what was done. Throws where the crew is to end. */
export function report(files: number, bytes: number): void {
  progress[worker * 2]! += files;
  progress[worker * 2 + 1]! += bytes;
  if (Atomics.load(control, 0) !== 0) throw new CrewStopped();
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
