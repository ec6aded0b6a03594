import { countOf, crc32Hex, ShardtoolError } from '@shardtool/base';
import {
  fetched,
  type LayoutName,
  layoutOf,
  type ManifestShard,
  type OnSkipped,
  openShard,
  openSource,
  readShardIndex,
  type ShardIndex,
  type ShardLayout,
  type Source,
} from '@shardtool/format';
import type { Checker, Fault } from '@shardtool/reader';
import { isRemote, type StorageOptions } from '@shardtool/storage';
import { checkCrops } from './check-crops.js';
import { checkImages, checkPayloads, type ExpectedPayload } from './check-payloads.js';
import { longestSpan, type ShardTotals, totalsOf } from './check-totals.js';
import { comparePositions } from './compare-positions.js';
import { reasonOf, ShardFaults } from './faults.js';
import { FrontToBack } from './front-to-back.js';

/** A shard to check: its location and what is known about it. */
export interface ShardToVerify {
  readonly format: LayoutName;
  /** Name of the shard in messages. */
  readonly name: string;
  readonly path: string;
  /** Options for requests, if it is remote. */
  readonly storage?: StorageOptions | undefined;
  /** Null for a tar of another tool that has no stored index. */
  readonly indexPath: string | null;
  /** Path of its crop index, which may be missing; null if the shard has no crop index. */
  readonly cropsPath: string | null;
  /**
   * The record in the manifest; null for a tar of another tool. `crc32` is of the whole file, eight hexadecimal digits.
   */
  readonly record: Pick<ManifestShard, 'bytes' | 'samples' | 'crc32' | 'maxSampleBytes'> | null;
}

export interface ShardVerdict {
  readonly samples: number;
  readonly bytes: number;
  readonly faults: readonly Fault[];
  /** Number of images that were decoded with warnings. */
  readonly warnings: number;
  /** Number of files in the shard that belong to no sample, except links. */
  readonly skippedEntries: number;
  /** True if every field had a checksum. */
  readonly checksums: boolean;
  /** Contribution of its index to the totals of the manifest; null if there is no readable index. */
  readonly totals: ShardTotals | null;
}

/**
 * Checks one shard against its index and the manifest, as far as they exist: size and crc32 of the file, headers, keys
 * and positions, and crc32 of every field. With a `checker`, also that every image can be decoded completely. Damaged
 * data is reported as faults, never thrown. A remote shard with faults is downloaded and checked once more, since bytes
 * can change during transfer.
 */
export async function checkShard(shard: ShardToVerify, checker: Checker | null): Promise<ShardVerdict> {
  const verdict = await verifyOnce(shard, checker);
  return verdict.faults.length > 0 && isRemote(shard.path) ? verifyOnce(shard, checker) : verdict;
}

async function verifyOnce(shard: ShardToVerify, checker: Checker | null): Promise<ShardVerdict> {
  const faults = new ShardFaults(shard.name);
  const { index, trouble } = await readIndex(shard);
  const counts = { samples: index?.samples ?? 0, bytes: 0, warnings: 0, skippedEntries: 0 };
  const verdict = { ...counts, checksums: index !== null };
  const onSkipped: OnSkipped = (_name, _offset, kind) => {
    if (kind !== 'link') verdict.skippedEntries++;
  };
  let isSame: boolean | null = null;
  let source: Source | undefined;
  try {
    const layout = await layoutOf(shard.format);
    source = await openShard(shard.format, shard.path, undefined, shard.storage);
    // The headers are walked first, and then the whole shard is read.
    if (isRemote(shard.path) && layout.expand === undefined) source = await fetched(source);
    verdict.bytes = source.size;
    checkCounts(shard, source, index, faults);
    const { samples, payloads } =
      index === null
        ? await walk(layout, source, faults, onSkipped)
        : await compare(layout, source, index, faults, onSkipped);
    verdict.samples = samples;
    verdict.checksums = (index !== null || samples > 0) && payloads.every(({ crc32 }) => crc32 !== null);
    const file = new FrontToBack(source);
    verdict.warnings = await checkPayloads(payloads, file, checker, faults);
    if (checker !== null) checkImages(payloads, faults);
    const sum = shard.record === null ? null : layout.expand === undefined ? await file.crc32() : await crc32Of(shard);
    isSame = sum === null ? null : crc32Hex(sum) === shard.record!.crc32;
  } catch (error) {
    faults.add(reasonOf(error));
  } finally {
    await source?.close();
  }
  if (index !== null && shard.cropsPath !== null) await checkCrops(shard.cropsPath, index, faults, shard.storage);
  if (trouble !== null) faults.add(trouble + (isSame ? ' (The shard itself is unchanged.)' : ''));
  // A change in bytes that belong to no sample (headers, padding) shows only in the checksum of the whole file.
  if (isSame === false && !faults.changed) {
    faults.add('the file has changed since it was packed, although every sample in it matches its index');
  }
  const longest = index === null ? 0 : longestSpan(index);
  if (index !== null && shard.record !== null && !faults.changed && longest !== shard.record.maxSampleBytes) {
    faults.add(`the longest sample has ${longest} bytes, the manifest says ${shard.record.maxSampleBytes}`);
  }
  return { ...verdict, faults: faults.list(), totals: index === null ? null : totalsOf(index) };
}

/** crc32 of the file itself, if its payloads are read through another view. */
async function crc32Of({ path, storage }: ShardToVerify): Promise<number> {
  const source = await openSource(path, undefined, storage);
  try {
    return await new FrontToBack(source).crc32();
  } finally {
    await source.close();
  }
}

/** Returns the index, or a description of its fault; neither if there is no stored index. */
async function readIndex({
  indexPath: path,
  storage,
}: ShardToVerify): Promise<{ index: ShardIndex | null; trouble: string | null }> {
  if (path === null) return { index: null, trouble: null };
  try {
    return { index: await readShardIndex(path, undefined, storage), trouble: null };
  } catch (error) {
    return { index: null, trouble: reasonOf(error) };
  }
}

function checkCounts({ record }: ShardToVerify, source: Source, index: ShardIndex | null, faults: ShardFaults): void {
  if (record === null) return;
  if (source.size !== record.bytes) faults.add(`the file has ${source.size} bytes, the manifest says ${record.bytes}`);
  if (index === null) return;
  if (index.samples !== record.samples) {
    faults.add(`the index has ${countOf(index.samples, 'sample')}, the manifest says ${record.samples}`);
  }
}

interface Contents {
  readonly samples: number;
  readonly payloads: readonly ExpectedPayload[];
}

async function compare(
  layout: ShardLayout,
  source: Source,
  index: ShardIndex,
  faults: ShardFaults,
  onSkipped: OnSkipped,
): Promise<Contents> {
  const readable = await comparePositions(layout, source, index, faults, onSkipped);
  const payloads: ExpectedPayload[] = [];
  for (const [field, { offset, bytes, crc32, msgpack }] of index.fields) {
    for (let row = 0; row < index.samples; row++) {
      if (readable[row] === 0 || offset[row]! < 0) continue;
      payloads.push({
        key: index.key[row]!,
        field,
        offset: offset[row]!,
        bytes: bytes[row]!,
        msgpack: msgpack?.[row] === 1,
        crc32: crc32?.[row] ?? null,
        saidBy: 'index',
      });
    }
  }
  return { samples: index.samples, payloads };
}

/** Lists the samples of a shard without an index. */
async function walk(layout: ShardLayout, source: Source, faults: ShardFaults, onSkipped: OnSkipped): Promise<Contents> {
  const payloads: ExpectedPayload[] = [];
  let samples = 0;
  try {
    const walked = layout.samples(source, onSkipped, (error, key) => {
      samples++;
      faults.add(reasonOf(error), key);
    });
    for await (const found of walked) {
      samples += found.length;
      for (const { key, fields } of found) {
        for (const { name, offset, bytes, msgpack = false, crc32 = null, lost } of fields) {
          if (lost !== undefined) faults.add(`field "${name}" is lost: ${reasonOf(lost)}`, key);
          else payloads.push({ key, field: name, offset, bytes, msgpack, crc32, saidBy: 'shard' });
        }
      }
    }
  } catch (error) {
    faults.add(reasonOf(error), error instanceof ShardtoolError ? error.key : undefined);
  }
  return { samples, payloads };
}
