import { DamagedShardError, FileNotFoundError, TruncatedShardError } from '@shardtool/base';
import { splitLocation } from '@shardtool/storage';
import { openSibling, type Source } from '../../source.js';
import { ArraySource, arrayReader } from '../array-images.js';
import { becameShorter } from '../bytes/file-window.js';
import type { ShardLayout } from '../layout.js';

/**
 * The binary form of CIFAR (cs.toronto.edu/~kriz/cifar.html): records of one label (CIFAR-10) or of a coarse and a fine
 * label (CIFAR-100), then 3,072 bytes of pixels: all red, then all green, then all blue values. Class names come from
 * the text file next to it.
 */
export const cifar: ShardLayout = {
  name: 'cifar',
  extension: '.bin',
  isOpenedByWalk: true,
  expand: open,
  samples: (source) => (source as ArraySource).samples(),
  partReader: () => arrayReader(open),
};

const SIDE = 32;
const PLANE = SIDE * SIDE;
/** Class counts of CIFAR-10 and of CIFAR-100. */
const CLASSES = 10;
const FINE_CLASSES = 100;
const COARSE_CLASSES = 20;
/** Maximum size of a file of class names. */
const MOST_NAMES_BYTES = 1 << 20;

async function open(source: Source): Promise<ArraySource> {
  try {
    return await opened(source);
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function opened(source: Source): Promise<ArraySource> {
  const { location: shard, size } = source;
  const { name } = splitLocation(shard);
  const isFine = /^(train|test)\.bin$/.test(name);
  const labels = isFine ? 2 : 1;
  const record = labels + 3 * PLANE;
  if (size === 0 || size % record !== 0) {
    const message = `${shard}: its ${size} bytes are not a multiple of ${record}, the record size of CIFAR-${isFine ? 100 : 10}; fetch it again.`;
    throw new TruncatedShardError({ shard, offset: size }, message);
  }
  const count = size / record;
  const read = async (first: number, records: number): Promise<Uint8Array> => {
    const bytes = new Uint8Array(records * record);
    const got = await source.readAt(first * record, bytes);
    if (got < bytes.length) throw becameShorter(shard, first * record + got);
    return bytes;
  };
  const [coarse, cls] = [new Uint8Array(count), new Uint8Array(count)];
  const AT_ONCE = 1000;
  for (let first = 0; first < count; first += AT_ONCE) {
    const bytes = await read(first, Math.min(AT_ONCE, count - first));
    for (let i = 0; i * record < bytes.length; i++) {
      coarse[first + i] = bytes[i * record]!;
      cls[first + i] = bytes[i * record + labels - 1]!;
    }
  }
  const names = await sidecarNames(source, isFine ? 'fine_label_names.txt' : 'batches.meta.txt');
  const checkLabels = (found: Uint8Array, what: string, classes: number): void => {
    const wrong = found.findIndex((label) => label >= classes);
    if (wrong === -1) return;
    const message = `${shard}: record ${wrong} (at byte ${wrong * record}) has the ${what} ${found[wrong]}, but the classes are 0 to ${classes - 1}; it is damaged, or belongs to another data set: fetch it again.`;
    throw new DamagedShardError({ shard, offset: wrong * record }, message);
  };
  checkLabels(cls, 'label', names.length > 0 ? names.length : isFine ? FINE_CLASSES : CLASSES);
  if (isFine) checkLabels(coarse, 'coarse label', COARSE_CLASSES);
  return new ArraySource(source, {
    count,
    width: SIDE,
    height: SIDE,
    cls,
    classes: names,
    columns: isFine ? new Map([['coarse_label', coarse]]) : new Map(),
    async pixels(first, images) {
      const bytes = await read(first, images);
      const pixels = new Uint8Array(images * 3 * PLANE);
      for (let i = 0, to = 0; i < images; i++) {
        const from = i * record + labels;
        for (let at = 0; at < PLANE; at++) {
          for (let channel = 0; channel < 3; channel++) pixels[to++] = bytes[from + channel * PLANE + at]!;
        }
      }
      return pixels;
    },
  });
}

/** Reads one name per line; an empty list if there is no such file. */
async function sidecarNames(shard: Source, name: string): Promise<readonly string[]> {
  const source = await openSibling(shard, name).catch((error) => {
    if (error instanceof FileNotFoundError) return null;
    throw error;
  });
  if (source === null) return [];
  try {
    const bytes = Buffer.alloc(Math.min(source.size, MOST_NAMES_BYTES));
    await source.readAt(0, bytes);
    return bytes
      .toString('utf8')
      .split('\n')
      .map((name) => name.trim())
      .filter((name) => name !== '');
  } finally {
    await source.close();
  }
}
