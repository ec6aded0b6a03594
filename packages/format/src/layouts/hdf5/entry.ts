import type { ShardLayout } from '../layout.js';

/** The extensions that h5py and Keras use for HDF5. */
const SHARD_NAME = /\.(h5|hdf5|hdf|he5)$/;

export const HDF5 = {
  extension: '.h5',
  isWritten: false,
  isBegin: (begin: Buffer) => begin.toString('latin1', 0, 8) === '\x89HDF\r\n\x1a\n',
  isShard: (name: string) => SHARD_NAME.test(name),
  load: async (): Promise<ShardLayout> => (await import('./index.js')).hdf5,
} as const;
