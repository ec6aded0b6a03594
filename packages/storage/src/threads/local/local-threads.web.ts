/** Browsers read no files of this machine, so this is never constructed there. */
export class LocalThreads {
  constructor() {
    throw new Error('A browser has no threads that read files.');
  }
}
