/** The worker's side of a group: says how far it is, and stops when it is told to. */
import { workerData } from 'node:worker_threads';
import { type WorkerSetup, WorkersStopped } from './worker-group.js';

const { worker, control, progress } = workerData as WorkerSetup;

/** Counts what was done. Throws if the group is stopped. */
export function report(files: number, bytes: number): void {
  progress[worker * 2]! += files;
  progress[worker * 2 + 1]! += bytes;
  if (Atomics.load(control, 0) !== 0) throw new WorkersStopped();
}
