import { inPython, kindsOf, messageIn, ShardtoolError } from '@shardtool/base';

/** The header of an answer, and the bytes that follow it. */
export interface Answer {
  readonly header: object;
  readonly parts?: readonly Uint8Array[];
  /** Called when the answer was written. */
  readonly written?: () => void;
}

/**
 * The fields from which the other side creates an error. The message spells options as Python does. If shardtool did
 * not foresee the error, its stack is included.
 */
export function errorHeader(error: unknown): object {
  if (error instanceof ShardtoolError) {
    const { name, shard, key, offset, path } = error;
    const message = messageIn(error, inPython);
    return { kind: 'error', name, kinds: kindsOf(error), message, shard, key, offset, path };
  }
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return { kind: 'error', name, message: stack ?? message };
}
