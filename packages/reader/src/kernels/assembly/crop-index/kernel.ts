// The crop index of baseline JPEGs records where every few MCUs start in the entropy-coded data. With it, small JPEGs of crops are made.
// The caller provides all memory, so any number of instances can share one memory.
export { pack } from './pack';
export { parse } from './parse';
export { splice } from './splice';
export { unpack } from './unpack';
export { walk } from './walk';
