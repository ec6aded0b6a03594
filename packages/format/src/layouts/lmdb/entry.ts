import type { WrittenLayout } from '../layout.js';

export const LMDB = {
  extension: '.lmdb',
  innerFile: 'data.mdb',
  isWritten: true,
  load: async (): Promise<WrittenLayout> => (await import('./index.js')).lmdb,
} as const;
