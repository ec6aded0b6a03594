/** The worker's side of a crew: says how far it is, and stops when it is told to. */
import { workerData } from 'node:worker_threads';
import { type CrewData, CrewStopped } from './worker-crew.js';

const { worker, control, progress } = workerData as CrewData;

/** Counts what was done. Throws where the crew is to end. */
export function report(files: number, bytes: number): void {
  progress[worker * 2]! += files;
  progress[worker * 2 + 1]! += bytes;
  if (Atomics.load(control, 0) !== 0) throw new CrewStopped();
}
