import { readSync } from 'node:fs';
import { FileError, UnsupportedShardError } from '@shardtool/base';
import { CropIndexWriter, imageColumn, openSource, type ShardIndex, type Source } from '@shardtool/format';
import type { CropIndexMaker, CropRefusal } from '@shardtool/reader';

/** What a crop index has. */
export interface CropIndexCounts {
  /** Images that have an index. */
  readonly indexed: number;
  /** Those that have none, by what they are. */
  readonly refused: Readonly<Partial<Record<CropRefusal, number>>>;
}

/** Images of this length and more have no crop index, and are not read for one. */
const TOO_LONG_BYTES = 2 ** 29;
const TOO_LARGE = -10;

/** The same of several crop indexes together. */
export function cropTotals(all: readonly CropIndexCounts[]): CropIndexCounts {
  const refused: Partial<Record<CropRefusal, number>> = {};
  let indexed = 0;
  for (const one of all) {
    indexed += one.indexed;
    for (const [why, count] of Object.entries(one.refused) as [CropRefusal, number][]) {
      refused[why] = (refused[why] ?? 0) + count;
    }
  }
  return { indexed, refused };
}

let maker: CropIndexMaker | undefined;

/**
 * Makes the crop index of a shard that is whole, from the images that its index names: of each sample the one that a loader takes. Holds one
 * image at a time. Throws {@link FileError}, also where the shard ends before, and
 * {@link UnsupportedShardError} for an index without checksums; nothing is left at `path` then.
 */
export async function writeCropIndex(
  path: string,
  index: ShardIndex,
  shard: Pick<Source, 'readAt' | 'location'>,
): Promise<CropIndexCounts> {
  // Packs without crop indexes have no need of it.
  const { CropIndexMaker, refusalOf } = await import('@shardtool/reader');
  maker ??= new CropIndexMaker();
  const { offset, bytes, crc32 } = imageColumn(index, undefined);
  if (crc32 === undefined) {
    const message = `${shard.location}: its index has no checksums of the images, by which a crop index could be told to be theirs; convert it first.`;
    throw new UnsupportedShardError({ path: shard.location }, message);
  }
  const writer = await CropIndexWriter.create(path);
  const refused: Partial<Record<CropRefusal, number>> = {};
  let indexed = 0;
  let buffer = Buffer.allocUnsafeSlow(1 << 20);
  try {
    for (let row = 0; row < index.samples; row++) {
      const place = { offset: offset[row]!, bytes: bytes[row]! };
      if (place.offset < 0) {
        writer.addNone();
        continue;
      }
      const image = { ...place, crc32: crc32[row]! };
      if (image.bytes > buffer.length) buffer = Buffer.allocUnsafeSlow(Math.min(2 * image.bytes, TOO_LONG_BYTES));
      const made =
        image.bytes < TOO_LONG_BYTES
          ? maker.make(await read(shard, image, buffer.subarray(0, image.bytes)))
          : TOO_LARGE;
      if (typeof made === 'number') {
        writer.add(image, -made);
        const why = refusalOf(made);
        refused[why] = (refused[why] ?? 0) + 1;
      } else {
        writer.add(image, made);
        indexed++;
      }
    }
    await writer.finish();
    return { indexed, refused };
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}

/** The same of the file at `shard`. */
export async function makeCropIndex(path: string, index: ShardIndex, shard: string): Promise<CropIndexCounts> {
  const source = await openSource(shard);
  try {
    return await writeCropIndex(path, index, source);
  } finally {
    await source.close();
  }
}

/** A file that is open. */
export function readerOf(fd: number): Pick<Source, 'readAt' | 'location'> {
  return { location: 'the shard', readAt: async (offset, target) => readSync(fd, target, 0, target.length, offset) };
}

async function read(
  { readAt, location }: Pick<Source, 'readAt' | 'location'>,
  { offset }: { readonly offset: number },
  target: Uint8Array,
): Promise<Uint8Array> {
  const got = await readAt(offset, target);
  if (got === target.length) return target;
  throw new FileError(
    { path: location, offset: offset + got },
    `${location} ends at byte ${offset + got}, within an image.`,
  );
}
