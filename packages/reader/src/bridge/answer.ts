import { inPython, kindsOf, messageIn, ShardtoolError } from '@shardtool/base';

/** The header of an answer, and the bytes that follow it. */
export interface Answer {
  readonly header: object;
  readonly parts?: readonly Uint8Array[];
  /** To be called when the answer is written. */
  readonly written?: () => void;
}

/** What the other side makes an error of: the message spells options as Python does. Of one that shardtool did not foresee it gets the stack. */
export function errorHeader(error: unknown): object {
  if (error instanceof ShardtoolError) {
    const { name, shard, key, offset, path } = error;
    const message = messageIn(error, inPython);
    return { kind: 'error', name, kinds: kindsOf(error), message, shard, key, offset, path };
  }
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return { kind: 'error', name, message: stack ?? message };
}
