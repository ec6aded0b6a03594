/** The reader as a child process of Python. Decoded images are in an anonymous file that both processes have mapped. */
import { parseRequest, type Request } from './requests.js';
import { serve } from './serve.js';
import { Session } from './session.js';

await serve('reader', (slotFile) => {
  const session = new Session(slotFile);
  return { parse: parseRequest, answer: (request: Request) => session.answer(request) };
});
