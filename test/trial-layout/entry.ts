import type { LayoutEntry } from '@shardtool/format';

export const TRIAL: LayoutEntry = {
  extension: '.trial',
  isWritten: false,
  load: async () => (await import('./layout.js')).trial,
};
