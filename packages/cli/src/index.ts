/** What `import ... from 'shardtool'` gives: packing and reading, in one place. */
export * from '@shardtool/reader';
export {
  type Fault,
  type IndexReport,
  indexShards,
  type PackOptions,
  type PackProgress,
  type PackReport,
  pack,
  type VerifyOptions,
  type VerifyProgress,
  type VerifyReport,
  verify,
} from '@shardtool/writer';
