import type { FileError } from '../errors.js';
import type { ReadAnswer } from './read-threads.js';

/** The answer of a thread for what went wrong. */
export function failed(id: number, error: unknown): ReadAnswer {
  const { name, message, path, offset } = error as FileError;
  return { kind: 'failed', id, name, message, path, offset };
}
