/** Code that is shared by the reader and other programs that Python starts. */
export { type Answer, errorHeader } from './answer.js';
export { serve } from './serve.js';
