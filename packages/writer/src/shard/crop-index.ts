import { readSync } from 'node:fs';
import { FileError, UnsupportedShardError } from '@shardtool/base';
import { CropIndexWriter, imageColumn, openSource, type ShardIndex, type Source } from '@shardtool/format';
import type { CropIndexMaker, CropRefusal } from '@shardtool/reader';

/** Contents of a crop index. */
export interface CropIndexCounts {
  /** Number of images with an index. */
  readonly indexed: number;
  /** Number of images without an index, by the reason. */
  readonly refused: Readonly<Partial<Record<CropRefusal, number>>>;
}

/** Images of this length or longer get no crop index, and are not read for one. */
const TOO_LONG_BYTES = 2 ** 29;
const TOO_LARGE = -10;

/** Sum of the counts of several crop indexes. */
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
 * Writes the crop index of a complete shard, for the image of each sample that loaders use. Keeps one image in memory
 * at a time. Throws {@link FileError}, also if the shard ends early, and {@link UnsupportedShardError} for an index
 * without checksums. After an error nothing is left at `path`.
 */
export async function writeCropIndex(
  path: string,
  index: ShardIndex,
  shard: Pick<Source, 'readAt' | 'location'>,
): Promise<CropIndexCounts> {
  // Imported here because packs without crop indexes do not need it.
  const { CropIndexMaker, refusalOf } = await import('@shardtool/reader');
  maker ??= new CropIndexMaker();
  const { offset, bytes, crc32 } = imageColumn(index, undefined);
  if (crc32 === undefined) {
    const message = `${shard.location}: its index has no checksums of the images, which a crop index requires; convert the dataset first.`;
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

/** Like {@link writeCropIndex}, for the shard file at `shard`. */
export async function makeCropIndex(path: string, index: ShardIndex, shard: string): Promise<CropIndexCounts> {
  const source = await openSource(shard);
  try {
    return await writeCropIndex(path, index, source);
  } finally {
    await source.close();
  }
}

/** A reader of an open file. */
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
    `${location} ends at byte ${offset + got}, in the middle of an image.`,
  );
}
