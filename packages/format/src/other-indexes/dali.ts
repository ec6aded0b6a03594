import { EntryNameError, OptionError } from '@shardtool/base';
import type { ShardIndex } from '../shard-index/shard-index.js';

const VERSION = 'v1.2';
/** Characters that end a word for the C++ streams with which DALI reads the file. */
const WHITE_SPACE = /[ \t\n\v\f\r]/;
/** Payloads in a tar begin at a block boundary; DALI accepts no other offsets. */
const TAR_BLOCK_BYTES = 512;

/**
 * The index with which `fn.readers.webdataset` of NVIDIA DALI opens a tar, version 1.2 (DALI, tools/wds2idx.py): a line
 * with the version and the number of samples, then one line per sample with four words for each of its files: field,
 * offset and length of the payload in bytes, name. Throws {@link EntryNameError} for a name with white space, which
 * would shift the words after it, and {@link OptionError} for a shard that has no samples or is not a tar.
 */
export function daliIndex(index: ShardIndex, shard: string): string {
  if (index.samples === 0) {
    throw new OptionError({ shard }, `${shard}: DALI does not read shards without samples; omit its index.`);
  }
  const lines = index.key.map((key, row) => sampleLine(index, row, key, shard));
  return `${VERSION} ${index.samples}\n${lines.join('\n')}\n`;
}

function sampleLine(index: ShardIndex, row: number, key: string, shard: string): string {
  const files: { offset: number; words: string }[] = [];
  for (const [field, columns] of index.fields) {
    const offset = columns.offset[row]!;
    if (offset < 0) continue;
    const name = `${key}.${field}`;
    checkDaliName(shard, key, name);
    if (offset % TAR_BLOCK_BYTES !== 0) {
      throw new OptionError(
        { shard, key },
        `${shard} is not a tar, and DALI reads only tars; pack to tar to use DALI.`,
      );
    }
    files.push({ offset, words: `${field} ${offset} ${columns.bytes[row]} ${name}` });
  }
  files.sort((a, b) => a.offset - b.offset);
  return files.map(({ words }) => words).join(' ');
}

/** Throws {@link EntryNameError} for a file of a tar that {@link daliIndex} cannot name. */
export function checkDaliName(shard: string, key: string, name: string): void {
  if (!WHITE_SPACE.test(name)) return;
  const message = `${shard}: the name ${JSON.stringify(name)} contains white space, which DALI's index cannot represent; rename it, or omit the index.`;
  throw new EntryNameError({ shard, key }, message);
}
