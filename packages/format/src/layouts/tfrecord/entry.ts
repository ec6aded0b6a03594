import type { TableLayout } from '../layout.js';

/**
 * `train.tfrecord`, `a.tfrec`, and TensorFlow's own numbering, with or without an extension before it:
 * `train-00000-of-01024`; also compressed with gzip.
 */
const SHARD_NAME = /(\.tfrecords?|\.tfrec|-\d{5}-of-\d{5})(\.gz)?$/;

export const TFRECORD = {
  extension: '.tfrecord',
  isWritten: 'by convert',
  isShard: (name: string) => SHARD_NAME.test(name),
  load: async (): Promise<TableLayout> => (await import('./index.js')).tfrecord,
} as const;
