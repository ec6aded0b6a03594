/** What `import ... from 'shardtool'` gives: packing and reading, in one place. */
export { CudaError, NoCudaError } from '@shardtool/cuda';
export * from '@shardtool/reader';
export {
  type CommitOptions,
  type CommitReport,
  type ConvertOptions,
  type ConvertReport,
  commitParts,
  convert,
  type Fault,
  type IndexReport,
  indexShards,
  type LmdbValues,
  type OtherIndex,
  type PackOptions,
  type PackProgress,
  type PackReport,
  type PartialField,
  pack,
  type QuarantinedSample,
  type RepairOptions,
  type RepairReport,
  repair,
  type VerifyOptions,
  type VerifyProgress,
  type VerifyReport,
  verify,
} from '@shardtool/writer';
