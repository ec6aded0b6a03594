/**
 * The reader as a child process: requests come over standard input, answers go to standard output, decoded images lie in a
 * file without a name that both processes have mapped. Ends when its input does, or when its parent is gone.
 *
 *   node main.js --parent PID --slot-file DESCRIPTOR [--kill-with-parent]
 */
import { parseArgs } from 'node:util';
import { sentence } from '@shardtool/format/visible';
import { encodeFrame, FrameDecoder } from './frames.js';
import { endWithParent } from './parent.js';
import { parseRequest, type Request } from './requests.js';
import { Session } from './session.js';

/** Does what reads what came from outside: anything else than the Python package speaks another language. */
function understood<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const { message } = error as Error;
    const text = `The reader was asked for something that it does not know (${message}); the Python package shardtool starts it and speaks to it.`;
    console.error(sentence(text));
    process.exit(1);
  }
}

const { values } = understood(() =>
  parseArgs({
    options: {
      parent: { type: 'string' },
      'slot-file': { type: 'string' },
      'kill-with-parent': { type: 'boolean', default: false },
    },
  }),
);
await endWithParent({ pid: Number(values.parent), kill: values['kill-with-parent'] });
// Ctrl-C in a terminal goes to both processes, and the parent may want to go on.
process.on('SIGINT', () => {});
process.stdout.on('error', () => process.exit(0));

const session = new Session(Number(values['slot-file']));
const decoder = new FrameDecoder();
/** Requests are answered one after the other. */
let last: Promise<void> = Promise.resolve();

async function respond(request: Request): Promise<void> {
  const answer = await session.answer(request);
  if (answer === null) return;
  process.stdout.write(encodeFrame({ ...answer.header, request: request.request }, answer.parts));
  answer.written?.();
}

process.stdin.on('data', (piece: Buffer) => {
  for (const request of understood(() => decoder.push(piece).map(parseRequest))) {
    last = last.then(() => respond(request));
  }
});
process.stdin.on('end', () => process.exit(0));
