import type { WrittenLayout } from '../layout.js';

export const TAR = {
  extension: '.tar',
  isWritten: true,
  load: async (): Promise<WrittenLayout> => (await import('./index.js')).tar,
} as const;
