import type { ShardLayout } from '../layout.js';

/** Zip files of class folders, stored or deflated. */
export const ZIP = {
  extension: '.zip',
  isWritten: false,
  load: async (): Promise<ShardLayout> => (await import('./index.js')).zip,
} as const;
