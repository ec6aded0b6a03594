import { readFile } from 'node:fs/promises';
import {
  crc32,
  crc32Hex,
  decodeShardIndex,
  isImageField,
  type LayoutName,
  layoutOf,
  openSource,
  type SamplePosition,
  type ShardIndex,
  type ShardLayout,
  ShardtoolError,
  type Source,
} from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import { fileCrc32 } from '../file-crc32.js';

/** What the manifest says of one shard, and where it is. */
export interface ShardToVerify {
  readonly format: LayoutName;
  /** As messages name it. */
  readonly name: string;
  readonly path: string;
  readonly indexPath: string;
  readonly bytes: number;
  readonly samples: number;
  /** Of the whole file, eight hexadecimal digits. */
  readonly crc32: string;
}

/** Something that is not as it was packed. Without a key it is the shard or its index as a whole. */
export interface Fault {
  readonly shard: string;
  readonly key?: string;
  readonly reason: string;
}

export interface ShardVerdict {
  readonly samples: number;
  readonly bytes: number;
  readonly faults: readonly Fault[];
  /** Images that were decoded although something in them is odd. */
  readonly warnings: number;
}

/** What the payload buffer holds at first; it grows to the largest payload. */
const BUFFER_BYTES = 2 ** 20;

/**
 * Checks one shard against its index and the manifest: size and crc32 of the file, headers, keys and positions, crc32 of
 * every field; and with a `checker` that every image can be decoded whole. Never throws for what is wrong with the data.
 */
export async function verifyShard(shard: ShardToVerify, checker: Checker | null): Promise<ShardVerdict> {
  const faults: Fault[] = [];
  const fault = (reason: string, key?: string) => faults.push({ shard: shard.name, reason, ...(key !== undefined && { key }) });
  const layout = await layoutOf(shard.format);
  let warnings = 0;
  const index = await readIndex(shard).catch((error: Error) => void fault(error.message));
  const source = await openSource(shard.path).catch((error: Error) => void fault(error.message));
  if (source === undefined) return { samples: 0, bytes: 0, faults, warnings };
  try {
    if (source.size !== shard.bytes) fault(`the file has ${source.size} bytes, the manifest says ${shard.bytes}`);
    if (index !== undefined) {
      if (index.samples !== shard.samples) {
        fault(`the index has ${index.samples} samples, the manifest says ${shard.samples}`);
      }
      await comparePositions(layout, source, index, fault);
      warnings = await checkFields(source, index, checker, fault);
    }
    // Whatever no sample covers (headers, padding) shows in the file's own checksum alone.
    if (faults.length === 0 && crc32Hex(await fileCrc32(source)) !== shard.crc32) {
      fault('the file has changed since it was packed, although every sample in it is as it was');
    }
  } finally {
    await source.close();
  }
  return { samples: index?.samples ?? 0, bytes: source.size, faults, warnings };
}

type OnFault = (reason: string, key?: string) => void;

async function readIndex({ indexPath }: ShardToVerify): Promise<ShardIndex> {
  const bytes = await readFile(indexPath).catch((cause: Error) => {
    throw new ShardtoolError({ path: indexPath }, `the index ${indexPath} cannot be read (${cause.message})`, { cause });
  });
  return decodeShardIndex(bytes, indexPath);
}

/** Walks the headers: every sample of the index is there, where the index says, and no other. */
async function comparePositions(layout: ShardLayout, source: Source, index: ShardIndex, fault: OnFault): Promise<void> {
  const rowOf = new Map(index.key.map((key, row) => [key, row]));
  const missing = new Set(index.key);
  try {
    for await (const samples of layout.samples(source)) {
      for (const sample of samples) {
        const row = rowOf.get(sample.key);
        if (row === undefined) fault('it is in the shard, but not in the index', sample.key);
        else if (!missing.delete(sample.key)) fault('it is in the shard twice', sample.key);
        else comparePosition(sample, index, row, fault);
      }
    }
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    fault(error.message);
    return;
  }
  for (const key of missing) fault('it is in the index, but not in the shard', key);
}

function comparePosition(sample: SamplePosition, index: ShardIndex, row: number, fault: OnFault): void {
  const stored = new Map(sample.fields.map((field) => [field.name, field]));
  for (const [name, { offset, bytes }] of index.fields) {
    const field = stored.get(name);
    stored.delete(name);
    if (offset[row]! < 0 && field === undefined) continue;
    if (field === undefined || field.offset !== offset[row] || field.bytes !== bytes[row]) {
      fault(`field "${name}" is not where the index says`, sample.key);
    }
  }
  for (const name of stored.keys()) fault(`field "${name}" is in the shard, but not in the index`, sample.key);
}

/** Reads every payload in the order of the index. Returns the number of images that were decoded with a warning. */
async function checkFields(source: Source, index: ShardIndex, checker: Checker | null, fault: OnFault): Promise<number> {
  let warnings = 0;
  let buffer = new Uint8Array(BUFFER_BYTES);
  for (let row = 0; row < index.samples; row++) {
    const key = index.key[row]!;
    for (const [name, column] of index.fields) {
      const offset = column.offset[row]!;
      const length = column.bytes[row]!;
      if (offset < 0) continue;
      if (offset + length > source.size) {
        fault(`field "${name}" lies beyond the end of the shard`, key);
        continue;
      }
      if (length > buffer.length) buffer = new Uint8Array(length);
      const stored = buffer.subarray(0, length);
      await source.readAt(offset, stored);
      const bytes = stored;
      const actual = crc32(bytes);
      if (actual !== column.crc32[row]) {
        fault(`field "${name}" has changed: crc32 ${crc32Hex(actual)}, the index says ${crc32Hex(column.crc32[row]!)}`, key);
      } else if (checker !== null && isImageField(name)) warnings += await checkImage(checker, name, key, bytes, fault);
    }
  }
  return warnings;
}

async function checkImage(checker: Checker, name: string, key: string, bytes: Uint8Array, fault: OnFault): Promise<number> {
  try {
    return (await checker.check(bytes)).warnings;
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    fault(`field "${name}" cannot be decoded whole: ${error.message}`, key);
    return 0;
  }
}
