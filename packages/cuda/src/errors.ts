import { ShardtoolError } from '@shardtool/base';

/** There is no CUDA driver here, or it has no device. */
export class NoCudaError extends ShardtoolError {}

/** A function of the CUDA driver failed. `code`, `codeName` and `text` are CUDA's own (cuda.h, `CUresult`). */
export class CudaError extends ShardtoolError {
  /** The name of the function: `cuMemAlloc_v2`. */
  readonly call: string;
  readonly code: number;
  readonly codeName: string;
  readonly text: string;

  constructor(failure: { call: string; code: number; codeName: string; text: string }, remedy: string) {
    const { call, code, codeName, text } = failure;
    super({}, `${call} failed with ${codeName} (${text})${remedy}.`);
    this.call = call;
    this.code = code;
    this.codeName = codeName;
    this.text = text;
  }
}
