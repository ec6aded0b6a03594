/**
 * Script of a process that opens files for another process, and reads small files as a whole, many in parallel.
 * Blocking calls run in libuv's thread pool, which is large in this process (see child.ts). A thread of that pool costs
 * almost nothing.
 */
import { close, fstat, open, read } from 'node:fs';
import { promisify } from 'node:util';
import { unusable } from '../../../local.js';
import { failed } from '../../failed.js';
import { FILES_SOCKET, type OpenerAnswer, type OpenerRequest } from './child.js';
import { descriptors } from './descriptors.js';

const opening = promisify(open);
const looking = promisify(fstat);
const reading = promisify(read);
const closing = promisify(close);

const { send } = descriptors();
// This process ends when its parent disconnects, and ignores signals that a terminal or scheduler sends to the whole
// group: the parent may continue.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
// A normal exit would wait for calls to a file system that hangs.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('message', (request: OpenerRequest) => void answer(request).then(tell));
tell({ kind: 'ready' });

function tell(answer: OpenerAnswer): void {
  if (process.connected) process.send!(answer);
}

async function answer({ id, kind, path }: OpenerRequest): Promise<OpenerAnswer> {
  let file: number | undefined;
  try {
    file = await opening(path, 'r');
    const found = await looking(file);
    if (!found.isFile()) throw new Error('it is not a regular file');
    if (kind === 'whole') return { kind: 'whole', id, bytes: await allOf(file, found.size) };
    passOn(id, file);
    return { kind: 'opened', id, size: found.size };
  } catch (cause) {
    return failed(id, unusable(path, 'opened', cause));
  } finally {
    if (file !== undefined) await closing(file).catch(() => {});
  }
}

/** If open files cannot be passed between processes, this process ends and the parent opens files itself. */
function passOn(id: number, file: number): void {
  try {
    send(FILES_SOCKET, id, file);
  } catch {
    process.exit(1);
  }
}

async function allOf(file: number, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  let done = 0;
  while (done < size) {
    const { bytesRead } = await reading(file, bytes, done, size - done, done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}
