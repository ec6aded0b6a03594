import { DamagedShardError } from '@shardtool/base';
import { jsonText } from '../../sample/exact-json.js';
import type { ColumnValue } from '../../sample/label-column.js';
import type { Source } from '../../source.js';
import { ArraySource, arrayReader, type ImageSource } from '../array-images.js';
import { keyOf, labelOfColumn, labelValue } from '../columns/column-names.js';
import type { ChosenColumns, ShardLayout } from '../layout.js';
import { BytesSource, type ImageRows } from './bytes-source.js';
import { chooseColumns, type HdfColumns, rowLength } from './columns.js';
import { type HdfDataset, openHdf5 } from './file.js';

/**
 * HDF5 files with a dataset of images (uint8 [n, height, width, 3], or grey) or of files of variable length, and
 * datasets with as many labels. h5wasm reads them, a few rows at a time. Without a dataset of keys, the keys are the
 * file's name and a number.
 */
export const hdf5: ShardLayout = layoutWith({});

/** How many rows of labels are read at once. */
const ROWS_AT_ONCE = 1 << 16;
/** Maximum size of an image, in bytes. */
const MOST_IMAGE_BYTES = 1 << 30;
const MOST_CLASS = 0x7fffffff;

function layoutWith(chosen: ChosenColumns): ShardLayout {
  const open = (source: Source) => openImages(source, chosen);
  return {
    name: 'hdf5',
    extension: '.h5',
    isOpenedByWalk: true,
    expand: open,
    samples: (source) => (source as ImageSource).samples(),
    partReader: () => arrayReader(open),
    choosing: layoutWith,
  };
}

async function openImages(source: Source, chosen: ChosenColumns): Promise<ImageSource> {
  const { location: shard } = source;
  try {
    const file = await openHdf5(source);
    try {
      const columns = chooseColumns(shard, file.datasets, chosen);
      const rows = await rowsOf(shard, columns);
      const owned: Source = {
        location: shard,
        size: source.size,
        readAt: (offset, target) => source.readAt(offset, target),
        close: async () => {
          file.close();
          await source.close();
        },
      };
      return columns.image.kind === 'bytes'
        ? await BytesSource.of(owned, columns.image, rows)
        : arraysOf(owned, columns.image, rows);
    } catch (error) {
      file.close();
      throw error;
    }
  } catch (error) {
    await source.close();
    throw error;
  }
}

function arraysOf(source: Source, image: HdfDataset, rows: ImageRows): ArraySource {
  const [count, height, width, channels = 1] = image.shape as [number, number, number, number?];
  const plane = height * width;
  if (3 * plane > MOST_IMAGE_BYTES)
    throw damaged(source.location, `an image of its dataset "${image.path}" would take more than 1 GiB`);
  return new ArraySource(source, {
    count,
    width,
    height,
    classes: [],
    ...rows,
    async pixels(first, images) {
      const read = (await image.read(first, images)) as Uint8Array;
      const bytes = images * plane * channels;
      if (read.length !== bytes)
        throw damaged(source.location, `its dataset "${image.path}" has fewer bytes than its shape implies`);
      if (channels === 3) return read;
      const pixels = new Uint8Array(3 * bytes);
      for (let i = 0; i < bytes; i++) pixels.fill(read[i]!, 3 * i, 3 * i + 3);
      return pixels;
    },
  });
}

async function rowsOf(shard: string, { image, cls, key, labels }: HdfColumns): Promise<ImageRows> {
  const count = image.shape[0]!;
  for (const dataset of [image, cls, key, ...labels.values()]) dataset?.check();
  const columns = new Map<string, ArrayLike<ColumnValue>>();
  let numbers: ArrayLike<number> | null = cls === null ? null : await classNumbers(cls, count);
  // Values that are not class numbers become a label column.
  if (cls !== null && numbers === null) columns.set(labelOfColumn(cls.path), await valuesOf(cls, count));
  numbers ??= { length: 0 };
  for (const [name, dataset] of labels) columns.set(labelOfColumn(name), await valuesOf(dataset, count));
  if (key === null) return { cls: numbers, columns };
  const keys = (await valuesOf(key, count)).map((text) =>
    keyOf(String(text), (why) => damaged(shard, `its dataset "${key.path}" has a key that ${why}`)),
  );
  return { cls: numbers, columns, keys };
}

async function classNumbers(dataset: HdfDataset, count: number): Promise<Int32Array | null> {
  const numbers = new Int32Array(count);
  for (let first = 0; first < count; first += ROWS_AT_ONCE) {
    const rows = Math.min(ROWS_AT_ONCE, count - first);
    const read = await dataset.read(first, rows);
    for (let i = 0; i < rows; i++) {
      const number = Number(read[i]);
      if (!Number.isInteger(number) || number < -1 || number > MOST_CLASS) return null;
      numbers[first + i] = number;
    }
  }
  return numbers;
}

/** Single values, and rows of several values as JSON text. */
async function valuesOf(dataset: HdfDataset, count: number): Promise<ColumnValue[]> {
  const length = rowLength(dataset, count) ?? 1;
  const values: ColumnValue[] = [];
  for (let first = 0; first < count; first += ROWS_AT_ONCE) {
    const rows = Math.min(ROWS_AT_ONCE, count - first);
    const read = (await dataset.read(first, rows)) as ArrayLike<number | bigint | string>;
    for (let i = 0; i < rows; i++) {
      const row = Array.from({ length }, (_, k) => read[i * length + k]!);
      values.push(length === 1 ? labelValue(row[0]!) : jsonText(row));
    }
  }
  return values;
}

function damaged(shard: string, what: string): DamagedShardError {
  return new DamagedShardError({ shard }, `${shard}: ${what}; it is damaged: fetch or write it again.`);
}
