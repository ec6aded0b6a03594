/** What `import ... from 'shardtool'` gives: packing and reading, in one place. */
export * from '@shardtool/reader';
export * from '@shardtool/writer';
export { ShardtoolError } from '@shardtool/format';
