// The crop index of baseline JPEGs: where every few MCUs begin in the entropy-coded data, and small JPEGs of crops that are made by
// it. No function has memory of its own, so that any number of instances share one.
export { pack } from './pack';
export { parse } from './parse';
export { splice } from './splice';
export { unpack } from './unpack';
export { walk } from './walk';
