export * from './checksum.js';
export * from './errors.js';
export * from './image/kind.js';
export * from './layout.js';
export * from './philox.js';
export * from './sample-name.js';
export type * from './shard-index.js';
export * from './source.js';
export * from './tar/index.js';
