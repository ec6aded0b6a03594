import { DamagedShardError, FileError, FileNotFoundError, TruncatedShardError } from '@shardtool/base';
import { splitLocation } from '@shardtool/storage';
import { openSibling, type Source } from '../../source.js';
import { ArraySource, arrayReader } from '../array-images.js';
import { becameShorter } from '../bytes/file-window.js';
import { unpacked } from '../bytes/unpacked.js';
import type { ShardLayout } from '../layout.js';

/**
 * IDX files of grey images, like MNIST (yann.lecun.com/exdb/mnist): 0x00000803, number, height and width (big-endian),
 * and one byte per pixel; labels in a file next to it, 0x00000801 and their number. Grey becomes three equal channels.
 * Files compressed with gzip are decompressed into an unnamed temporary file when they are opened.
 */
export const idx: ShardLayout = {
  name: 'idx',
  extension: '-ubyte',
  isOpenedByWalk: true,
  expand: open,
  samples: (source) => (source as ArraySource).samples(),
  partReader: () => arrayReader(open),
};

const IMAGES = 0x00000803;
const LABELS = 0x00000801;
const IMAGES_HEAD = 16;
const LABELS_HEAD = 8;
/** Maximum side length in pixels. */
const MOST_SIDE = 1 << 14;

async function open(packed: Source): Promise<ArraySource> {
  const source = await plain(packed);
  try {
    return await opened(source, packed);
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function opened(source: Source, packed: Source): Promise<ArraySource> {
  const { size } = source;
  const { location } = packed;
  const head = await read(source, 0, IMAGES_HEAD);
  const [magic, count, height, width] = [0, 4, 8, 12].map((at) => head.readUInt32BE(at)) as [
    number,
    number,
    number,
    number,
  ];
  if (magic !== IMAGES || width === 0 || height === 0 || width > MOST_SIDE || height > MOST_SIDE)
    throw damaged(location, 'it does not begin like an IDX file of images');
  const plane = width * height;
  if (IMAGES_HEAD + count * plane !== size) throw cut(location, size, `${count} images of ${width} x ${height}`);
  return new ArraySource(
    { ...source, location, readAt: (at, target) => source.readAt(at, target), close: () => source.close() },
    {
      count,
      width,
      height,
      cls: await readLabels(packed, count),
      classes: [],
      columns: new Map(),
      async pixels(first, images) {
        const grey = await read(source, IMAGES_HEAD + first * plane, images * plane);
        const pixels = new Uint8Array(grey.length * 3);
        for (let i = 0; i < grey.length; i++) pixels.fill(grey[i]!, 3 * i, 3 * i + 3);
        return pixels;
      },
    },
  );
}

/** Reads the labels file: `train-labels-idx1-ubyte` for `train-images-idx3-ubyte`. Throws {@link FileError} if it is missing. */
async function readLabels(shard: Source, count: number): Promise<Uint8Array> {
  const images = shard.location;
  const name = splitLocation(images).name.replace('images', 'labels').replace('idx3', 'idx1');
  const names = [name, name.endsWith('.gz') ? name.slice(0, -3) : `${name}.gz`];
  for (const one of names) {
    const packed = await openSibling(shard, one).catch((error) => {
      if (error instanceof FileNotFoundError) return null;
      throw error;
    });
    if (packed === null) continue;
    const { location } = packed;
    const source = await plain(packed);
    try {
      const head = await read(source, 0, LABELS_HEAD);
      if (head.readUInt32BE(0) !== LABELS) throw damaged(location, 'it does not begin like an IDX file of labels');
      if (head.readUInt32BE(4) !== count)
        throw damaged(location, `it has ${head.readUInt32BE(4)} labels for ${count} images`);
      return await read(source, LABELS_HEAD, count);
    } finally {
      await source.close();
    }
  }
  throw new FileError(
    { path: images },
    `${images} has no labels file next to it: ${names[0]} is missing; fetch that file too.`,
  );
}

async function plain(source: Source): Promise<Source> {
  const head = new Uint8Array(2);
  await source.readAt(0, head);
  return head[0] === 0x1f && head[1] === 0x8b ? unpacked(source, 'gz') : source;
}

async function read(source: Source, offset: number, bytes: number): Promise<Buffer> {
  if (offset + bytes > source.size) throw cut(source.location, source.size, `${offset + bytes} bytes`);
  const buffer = Buffer.alloc(bytes);
  const got = await source.readAt(offset, buffer);
  if (got < bytes) throw becameShorter(source.location, offset + got);
  return buffer;
}

function cut(shard: string, size: number, what: string): TruncatedShardError {
  return new TruncatedShardError(
    { shard, offset: size },
    `${shard}: it has ${size} bytes, but its header says that it holds ${what}; fetch it again.`,
  );
}

function damaged(shard: string, what: string): DamagedShardError {
  return new DamagedShardError({ shard, offset: 0 }, `${shard}: ${what}; fetch it again.`);
}
