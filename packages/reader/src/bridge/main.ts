/**
 * The reader as a child process: requests come over standard input, answers go to standard output, decoded images lie in a
 * file without a name that both processes have mapped. Ends when its input does, or when its parent is gone.
 *
 *   node main.js --parent PID --slot-file DESCRIPTOR [--kill-with-parent]
 */
import { parseArgs } from 'node:util';
import { encodeFrame, FrameDecoder } from './frames.js';
import { endWithParent } from './parent.js';
import { parseRequest, type Request } from './requests.js';
import { Session } from './session.js';

const { values } = parseArgs({
  options: {
    parent: { type: 'string' },
    'slot-file': { type: 'string' },
    'kill-with-parent': { type: 'boolean', default: false },
  },
});
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
  for (const header of decoder.push(piece)) {
    const request = parseRequest(header);
    last = last.then(() => respond(request));
  }
});
process.stdin.on('end', () => process.exit(0));
