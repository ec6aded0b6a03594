import type { ShardLayout } from '../layout.js';

/** Zip files of class folders, stored or deflated. */
export const ZIP = {
  extension: '.zip',
  isWritten: false,
  isBegin: (begin: Buffer) => begin.toString('latin1', 0, 4) === 'PK\x03\x04',
  load: async (): Promise<ShardLayout> => (await import('./index.js')).zip,
} as const;
