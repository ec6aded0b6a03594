export * from './errors.js';
export * from './layout.js';
export * from './philox.js';
export * from './source.js';
