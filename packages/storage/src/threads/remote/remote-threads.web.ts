/** Browsers read in the thread that asks: without memory that threads share, this is never constructed there. */
export class RemoteThreads {
  constructor() {
    throw new Error('A browser has no threads that read shards.');
  }
}
