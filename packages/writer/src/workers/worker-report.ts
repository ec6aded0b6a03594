/** The worker's side of a group: reports progress, and stops on request. */
import { workerData } from 'node:worker_threads';
import { type WorkerSetup, WorkersStopped } from './worker-group.js';

const { worker, control, progress } = workerData as WorkerSetup;

/** Counts finished work. Throws if the group is stopped. */
export function report(files: number, bytes: number): void {
  progress[worker * 2]! += files;
  progress[worker * 2 + 1]! += bytes;
  if (Atomics.load(control, 0) !== 0) throw new WorkersStopped();
}
