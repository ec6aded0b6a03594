import { ShardtoolError } from '@shardtool/base';

/** An overlay is damaged, is missing, or belongs to another dataset. */
export class OverlayError extends ShardtoolError {
  static override readonly kind: string = 'OverlayError';
}
