import { open } from 'node:fs/promises';
import path from 'node:path';
import { FileError, inLanes, OptionError, option, sentence } from '@shardtool/base';
import { imageKindOf, SIGNATURE_BYTES } from '../image/kinds.js';
import { compressedWhole, compressionOf } from '../layouts/bytes/compressed.js';
import { entryOf, type LayoutName, layoutNames } from '../layouts/registry.js';

/** How many files are examined concurrently, and at most per folder. */
const LOOKED_AT_ONCE = 32;

/** Files that users may take for a dataset but that cannot be read, by their first bytes (latin1). */
const BEGINNINGS: readonly (readonly [begin: string, kind: string])[] = [
  ['7z\xbc\xaf\x27\x1c', 'a 7z archive'],
  ['Rar!\x1a\x07', 'a RAR archive'],
  ['ARROW1', 'an Arrow file'],
  ['SQLite format 3', 'an SQLite database'],
  ['\x93NUMPY', 'an array of NumPy'],
  ['%PDF-', 'a PDF'],
];

/**
 * The layout of a local file whose name does not show it: the layout of its first bytes, otherwise tar. Throws {@link
 * OptionError} if the bytes belong to another known kind of file, and UnsupportedShardError for a file that is
 * compressed as a whole.
 */
export async function layoutOfContent(location: string): Promise<LayoutName> {
  const begin = await beginOf(location);
  const layout = layoutNames().find((name) => entryOf(name).isBegin?.(begin));
  if (layout !== undefined) return layout;
  const compression = compressionOf(begin);
  if (compression !== null) throw compressedWhole(location, compression);
  const kind = kindOf(location, begin);
  if (kind === null) return 'tar';
  const layouts = layoutNames().map((name) => `${name} (${entryOf(name).extension})`);
  const known = layouts.filter((name) => !name.endsWith('()')).join(', ');
  throw new OptionError(
    { path: location },
    `${location} is ${kind}, which shardtool does not read. It reads ${known}.`,
  );
}

/** The files of a folder whose first bytes are those of a layout that the caller named. */
export async function filesOfContent(
  folder: string,
  names: readonly string[],
  layout: LayoutName,
): Promise<readonly string[]> {
  const found = await inLanes(names, LOOKED_AT_ONCE, async (name) => {
    const isOne = await isContentOf(layout, path.join(folder, name)).catch(() => false);
    return isOne ? [name] : [];
  });
  return found.flat();
}

/** The error for a folder that has no shards by name but a file that begins like a shard; null if there is no such file. */
export async function hintAtContent(folder: string, names: readonly string[]): Promise<FileError | null> {
  for (const name of names.slice(0, LOOKED_AT_ONCE)) {
    const begin = await beginOf(path.join(folder, name)).catch(() => Buffer.alloc(0));
    const layout = layoutNames().find((one) => entryOf(one).isBegin?.(begin));
    if (layout === undefined) continue;
    const message = sentence`No file in ${folder} has the name of a shard, but ${name} begins like a shard of layout ${layout}. To read it, set ${option('layout', layout)}.`;
    return new FileError({ path: folder }, message);
  }
  return null;
}

function kindOf(location: string, begin: Buffer): string | null {
  const image = imageKindOf(begin);
  if (image !== undefined) return `a single image (${image})`;
  const text = begin.toString('latin1');
  const known = BEGINNINGS.find(([bytes]) => text.startsWith(bytes));
  if (known !== undefined) return known[1];
  return location.endsWith('.beton') ? "a file of FFCV's" : null;
}

/** Whether the first bytes of a local file are those of this layout. */
export async function isContentOf(layout: LayoutName, location: string): Promise<boolean> {
  return entryOf(layout).isBegin?.(await beginOf(location)) ?? false;
}

async function beginOf(location: string): Promise<Buffer> {
  const file = await open(location);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SIGNATURE_BYTES), 0, SIGNATURE_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
