import { open } from 'node:fs/promises';
import { OptionError } from '@shardtool/base';
import { imageKindOf, SIGNATURE_BYTES } from '../image/kinds.js';
import { compressedWhole, compressionOf } from '../layouts/compressed.js';
import { entryOf, layoutNames } from '../layouts/registry.js';

/** What people take for a dataset and is none that is read here, by the bytes with which it begins (latin1). */
const BEGINNINGS: readonly (readonly [begin: string, kind: string])[] = [
  ['PK\x03\x04', 'a ZIP archive'],
  ['7z\xbc\xaf\x27\x1c', 'a 7z archive'],
  ['Rar!\x1a\x07', 'a RAR archive'],
  ['\x89HDF\r\n', 'an HDF5 file'],
  ['ARROW1', 'an Arrow file'],
  ['SQLite format 3', 'an SQLite database'],
  ['\x93NUMPY', 'an array of NumPy'],
  ['%PDF-', 'a PDF'],
];

/**
 * Looks at a local file that no layout knows by its name, and would be taken for a tar. Throws {@link OptionError} that says what it
 * is, where it is known to be something else, and UnsupportedShardError for a file that is compressed as a whole.
 */
export async function checkMayBeShard(location: string): Promise<void> {
  const begin = await beginOf(location);
  const compression = compressionOf(begin);
  if (compression !== null) throw compressedWhole(location, compression);
  const kind = kindOf(location, begin);
  if (kind === null) return;
  const layouts = layoutNames().map((name) => `${name} (${entryOf(name).extension})`);
  const known = layouts.filter((name) => !name.endsWith('()')).join(', ');
  throw new OptionError(
    { path: location },
    `${location} is ${kind}, and no kind of shards that is read here: ${known}.`,
  );
}

function kindOf(location: string, begin: Buffer): string | null {
  const image = imageKindOf(begin);
  if (image !== undefined) return `a single image (${image})`;
  const text = begin.toString('latin1');
  const known = BEGINNINGS.find(([bytes]) => text.startsWith(bytes));
  if (known !== undefined) return known[1];
  return location.endsWith('.beton') ? "a file of FFCV's" : null;
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
