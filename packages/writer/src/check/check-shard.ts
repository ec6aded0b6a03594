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
import type { Checker } from '@shardtool/reader';
import { isRemote, type StorageOptions } from '@shardtool/storage';
import { checkCrops } from './check-crops.js';
import { checkImages, checkPayloads, type ExpectedPayload } from './check-payloads.js';
import { longestSpan, type ShardTotals, totalsOf } from './check-totals.js';
import { comparePositions } from './compare-positions.js';
import { type Fault, reasonOf, ShardFaults } from './faults.js';
import { FrontToBack } from './front-to-back.js';

/** One shard, where it is, and what is known of it. */
export interface ShardToVerify {
  readonly format: LayoutName;
  /** As messages name it. */
  readonly name: string;
  readonly path: string;
  /** How it is asked for, where it is remote. */
  readonly storage?: StorageOptions | undefined;
  /** Null for a foreign tar whose index nobody has kept. */
  readonly indexPath: string | null;
  /** Its crop index, which may be missing; null where it is to have none. */
  readonly cropsPath: string | null;
  /** What the manifest says; null for a foreign tar. `crc32` is of the whole file, eight hexadecimal digits. */
  readonly record: Pick<ManifestShard, 'bytes' | 'samples' | 'crc32' | 'maxSampleBytes'> | null;
}

export interface ShardVerdict {
  readonly samples: number;
  readonly bytes: number;
  readonly faults: readonly Fault[];
  /** Images that were decoded although something in them is odd. */
  readonly warnings: number;
  /** Files in it that belong to no sample, but for links. */
  readonly skippedEntries: number;
  /** Whether there was a checksum for every field. */
  readonly checksums: boolean;
  /** What its index adds to the totals of the manifest; null where there is no index to be read. */
  readonly totals: ShardTotals | null;
}

/**
 * Checks one shard against its index and the manifest, as far as there are such: size and crc32 of the file, headers,
 * keys and positions, crc32 of every field; and with a `checker` that every image can be decoded whole. Never throws for
 * what is wrong with the data. A remote shard with faults is fetched and checked once more, since bytes can change on their way.
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
    // Its headers are walked first, and then all of it is read.
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
  if (trouble !== null) faults.add(trouble + (isSame ? ' (The shard itself is as it was packed.)' : ''));
  // Whatever no sample covers (headers, padding) shows in the file's own checksum alone.
  if (isSame === false && !faults.changed) {
    faults.add('the file has changed since it was packed, although every sample in it is as its index says');
  }
  const longest = index === null ? 0 : longestSpan(index);
  if (index !== null && shard.record !== null && !faults.changed && longest !== shard.record.maxSampleBytes) {
    faults.add(`the longest sample has ${longest} bytes, the manifest says ${shard.record.maxSampleBytes}`);
  }
  return { ...verdict, faults: faults.list(), totals: index === null ? null : totalsOf(index) };
}

/** Of the file itself, where its payloads are seen in another way. */
async function crc32Of({ path, storage }: ShardToVerify): Promise<number> {
  const source = await openSource(path, undefined, storage);
  try {
    return await new FrontToBack(source).crc32();
  } finally {
    await source.close();
  }
}

/** The index, or what is wrong with it; neither where nobody has kept one. */
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

/** What a shard without an index says of itself. */
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
