import type { WrittenLayout } from '../layout.js';

/** Offsets of the magic number: on 64 bits, on 32 bits, and in version 1.0. Opening checks which of these can be read. */
const MAGIC_AT = [16, 12, 24];

function isMagic(word: Buffer): boolean {
  return word.readUInt32LE() === 0xbeefc0de || word.readUInt32BE() === 0xbeefc0de;
}

export const LMDB = {
  extension: '.lmdb',
  innerFile: 'data.mdb',
  isBegin: (begin: Buffer) => MAGIC_AT.some((at) => begin.length >= at + 4 && isMagic(begin.subarray(at, at + 4))),
  isWritten: true,
  load: async (): Promise<WrittenLayout> => (await import('./index.js')).lmdb,
} as const;
