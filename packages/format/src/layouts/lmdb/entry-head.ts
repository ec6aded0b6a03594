import { isUtf8 } from 'node:buffer';
import { EntryNameError } from '@shardtool/base';
import { SIGNATURE_BYTES } from '../../image/kinds.js';
import { whyUnsafe } from '../../sample/sample-name.js';
import type { FileWindow } from '../bytes/file-window.js';
import { PAGE_HEADER_BYTES } from './page.js';
import type { LmdbDatabase, LmdbEntry } from './read.js';

/** The first bytes of the value. If it is on overflow pages, this also checks their header. */
export async function headOf(entry: LmdbEntry, file: FileWindow, database: LmdbDatabase): Promise<Buffer> {
  if (entry.inline !== null) return entry.inline;
  const wanted = PAGE_HEADER_BYTES + Math.min(entry.bytes, SIGNATURE_BYTES);
  const pages = await file.at(entry.offset - PAGE_HEADER_BYTES, wanted);
  database.checkRun(pages, entry);
  return pages.subarray(PAGE_HEADER_BYTES, wanted);
}

/** Decodes a key as text. It must not lead out of the folder into which samples are unpacked. */
export function keyText(entry: LmdbEntry, shard: string): string {
  const { key, offset } = entry;
  const text = isUtf8(key) ? key.toString('utf8') : null;
  const reason = text === null ? 'is not UTF-8' : whyUnsafe(text);
  if (text !== null && reason === null) return text;
  const name = text === null ? `0x${key.toString('hex')}` : JSON.stringify(text);
  const message = `${shard}: the key ${name} ${reason}, so it cannot be the key of a sample; write the shard again with another key.`;
  throw new EntryNameError({ shard, offset }, message);
}
