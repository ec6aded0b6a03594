import { type Sentence, ShardtoolError, sentence } from '@shardtool/base';

/** This machine has no CUDA driver, or the driver finds no device. */
export class NoCudaError extends ShardtoolError {
  static override readonly kind: string = 'NoCudaError';
}

/** A function of the CUDA driver failed. `result`, `resultName` and `text` are CUDA's code, name and description (cuda.h, `CUresult`). */
export class CudaError extends ShardtoolError {
  static override readonly kind: string = 'CudaError';

  /** Name of the function, such as `cuMemAlloc_v2`. */
  readonly call: string;
  readonly result: number;
  readonly resultName: string;
  readonly text: string;

  constructor(failure: { call: string; result: number; resultName: string; text: string }, remedy: string | Sentence) {
    const { call, result, resultName, text } = failure;
    super({}, sentence`${call} failed with ${resultName} (${text})${remedy}.`);
    this.call = call;
    this.result = result;
    this.resultName = resultName;
    this.text = text;
  }
}
