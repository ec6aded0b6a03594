export * from './checksum.js';
export * from './errors.js';
export * from './image/kind.js';
export * from './layout.js';
export * from './philox.js';
export type * from './shard-index.js';
export * from './source.js';
