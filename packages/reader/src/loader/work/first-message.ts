import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';

/** Data of a thread that was started before it is known what it does. */
export interface WaitingWorkerData {
  readonly worker: number;
  /** 0 until every worker has its first message. */
  readonly gate: Int32Array;
  /** The first message. Deno cannot receive one from `parentPort` without an event. */
  readonly port: MessagePort;
}

/**
 * In a decode worker: waits until its pool knows what the workers do, and returns the data. Null if the worker is not
 * needed. It blocks the thread, so that the script of the worker is a plain sequence.
 */
export function firstMessage<Data>(): Data | null {
  const { gate, port } = workerData as WaitingWorkerData;
  Atomics.wait(gate, 0, 0);
  return receiveMessageOnPort(port)!.message as Data | null;
}
