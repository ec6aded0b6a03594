import type { Workers } from '../loader/work/start-workers.js';
import { parseRequest, type Request } from './requests.js';
import { serve } from './serve.js';
import { Session } from './session.js';

/** Serves loaders and samples. `workers`: decode workers that have been started for the first loader. */
export function serveReader(workers: Workers | null): Promise<void> {
  return serve('reader', (slotFile) => {
    const session = new Session(slotFile, workers);
    return { parse: parseRequest, answer: (request: Request) => session.answer(request) };
  });
}
