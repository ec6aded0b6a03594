import type { TableLayout } from '../layout.js';
import { splitOf } from '../split-name.js';

/** `train-00000-of-00002.parquet`. Our indexes also have such names, and are next to their shards: see `findShards`. */
export const PARQUET = {
  extension: '.parquet',
  isWritten: 'by convert',
  shardFolder: 'data',
  maybeSidecar: true,
  isReadByFolder: true,
  isBegin: (begin: Buffer) => begin.toString('latin1', 0, 4) === 'PAR1',
  isDeep: true,
  splitOf,
  /** The naming scheme of `push_to_hub`. */
  stemOf: (split: string, number: number, count: number) =>
    `${split.replaceAll(/[^\w.]/g, '_')}-${fiveDigits(number)}-of-${fiveDigits(count)}`,
  load: async (): Promise<TableLayout> => (await import('./index.js')).parquet,
} as const;

function fiveDigits(number: number): string {
  return String(number).padStart(5, '0');
}
