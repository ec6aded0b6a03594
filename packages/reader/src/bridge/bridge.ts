/** What other programs that Python starts have in common with the reader. */
export { type Answer, errorHeader } from './answer.js';
export { serve } from './serve.js';
