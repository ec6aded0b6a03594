import type { WrittenLayout } from '../layout.js';

export const MSGPACK = {
  extension: '.msgpack',
  isWritten: true,
  load: async (): Promise<WrittenLayout> => (await import('./index.js')).msgpack,
} as const;
