import { parseArgs } from 'node:util';
import { inPython, redirectWarnings, spellWarnings } from '@shardtool/base';
import { toMessage } from '@shardtool/base/text';
import type { Answer } from './answer.js';
import { encodeFrame, FrameDecoder } from './frames.js';
import { endWithParent } from './parent.js';

/** Handlers for requests of the parent process, which are answered one after the other. */
export interface Answering<Request extends { readonly request: number }> {
  /** Throws if the value is not a request. */
  parse(header: unknown, rest: Uint8Array): Request;
  /** Returns null if the request has no answer. Errors are answers, too. */
  answer(request: Request): Promise<Answer | null>;
}

/**
 * Serves the process that started this one: requests come over standard input, answers go to standard output. Ends at
 * the end of standard input, or when the parent has ended. `who` names this process in messages; `open` gets the
 * descriptor of the slot file, which both processes have mapped.
 *
 *   node PROGRAM --parent PID --slot-file DESCRIPTOR [--kill-with-parent] [--workers COUNT]
 *
 * `--workers` is for the reader, which has started them before.
 */
export async function serve<Request extends { readonly request: number }>(
  who: string,
  open: (slotFile: number) => Answering<Request>,
): Promise<void> {
  /**
   * Runs code that parses input from the other side. If it fails, the other side is probably not the Python package.
   */
  const understood = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      const { message } = error as Error;
      const text = `The ${who} received a request that it does not know (${message}); only the Python package shardtool starts this program and sends requests to it.`;
      console.error(toMessage(text));
      process.exit(1);
    }
  };
  const { values } = understood(() =>
    parseArgs({
      options: {
        parent: { type: 'string' },
        'slot-file': { type: 'string' },
        'kill-with-parent': { type: 'boolean', default: false },
        workers: { type: 'string' },
      },
    }),
  );
  await endWithParent({ pid: Number(values.parent), kill: values['kill-with-parent'] });
  // Ctrl-C in a terminal goes to both processes, and the parent may want to continue.
  process.on('SIGINT', () => {});
  process.stdout.on('error', () => process.exit(0));
  const warnings: string[] = [];
  spellWarnings(inPython);
  redirectWarnings((message) => warnings.push(message));
  const answering = open(Number(values['slot-file']));
  const decoder = new FrameDecoder();
  let last: Promise<void> = Promise.resolve();
  const respond = async (request: Request): Promise<void> => {
    const answer = await answering.answer(request);
    if (answer === null) return;
    const pending = warnings.length > 0 && { warnings: warnings.splice(0) };
    process.stdout.write(encodeFrame({ ...answer.header, ...pending, request: request.request }, answer.parts));
    answer.written?.();
  };
  process.stdin.on('data', (piece: Buffer) => {
    const requests = understood(() => decoder.push(piece).map(({ header, rest }) => answering.parse(header, rest)));
    for (const request of requests) last = last.then(() => respond(request));
  });
  process.stdin.on('end', () => process.exit(0));
}
