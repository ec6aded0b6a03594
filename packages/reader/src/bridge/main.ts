/** The reader as a child process of Python. Decoded images are in an anonymous file that both processes have mapped. */
import { parseArgs } from 'node:util';
import { startWorkers } from '../loader/work/start-workers.js';

const { values } = parseArgs({ options: { workers: { type: 'string' } }, strict: false });
// A thread takes about as long to start as this one needs to load the reader. With a core for each, both happen at the same time.
const workers = values.workers === undefined ? null : startWorkers(Number(values.workers) || undefined, 1);
const { serveReader } = await import('./serve-reader.js');
await serveReader(workers);
