/**
 * Stores counted sizes on this machine, so that the next run starts without reading an index. The file has a header,
 * JSON in one line, and one byte per sample. If a file is damaged or belongs to other data, sizes are counted again.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { crc32, makeFolder, writeAtomically } from '@shardtool/base';
import { sideFolder } from '@shardtool/format';
import { z } from 'zod';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { SizedSamples } from './count-sizes.js';
import type { Buckets } from './options.js';

const MARK = 'shardtool buckets 1';
const count = z.number().int().nonnegative();
const size = z.object({ width: count, height: count });
const header = z.object({
  mark: z.literal(MARK),
  key: z.string(),
  crc32: count,
  sizes: z.array(size),
  perSize: z.array(count),
  kept: z.array(z.number()),
  leftOut: z.array(size.extend({ samples: count })),
});

/** Everything that sizes depend on. */
export interface SizesKey {
  /** Identities of the dataset, or of each dataset of a mixture, and of the selection. */
  readonly identities: readonly string[];
  readonly buckets: Buckets;
  readonly turns: boolean;
}

function keyOf({ identities, buckets: { sizes, isComputed }, turns }: SizesKey): string {
  return createHash('sha256')
    .update(JSON.stringify([identities, sizes, isComputed, turns]))
    .digest('hex');
}

/** Null if this machine stores nothing for the user. */
function fileOf({ location }: StoredDataset, key: string): string | null {
  const folder = sideFolder(location);
  return folder && path.join(folder, `buckets-${key.slice(0, 16)}`);
}

/** Returns the stored sizes, or null if there are none or they cannot be used. */
export async function keptSizes(dataset: StoredDataset, key: SizesKey): Promise<SizedSamples | null> {
  const wanted = keyOf(key);
  const file = fileOf(dataset, wanted);
  const bytes = file === null ? null : await readFile(file).catch(() => null);
  const end = bytes?.indexOf(0x0a) ?? -1;
  if (bytes === null || end < 0) return null;
  let found: z.output<typeof header>;
  try {
    found = header.parse(JSON.parse(bytes.toString('utf8', 0, end)));
  } catch {
    return null;
  }
  const of = new Uint8Array(bytes.buffer, bytes.byteOffset + end + 1, bytes.length - end - 1);
  if (found.key !== wanted || of.length !== dataset.size || crc32(of) !== found.crc32) return null;
  const { sizes, perSize, kept, leftOut } = found;
  return { sizes, perSize, kept, leftOut, of };
}

/** If sizes cannot be stored, they are counted again next time. */
export async function keepSizes(dataset: StoredDataset, key: SizesKey, { of, ...found }: SizedSamples): Promise<void> {
  const whole = keyOf(key);
  const file = fileOf(dataset, whole);
  if (file === null) return;
  const head = JSON.stringify({ mark: MARK, key: whole, crc32: crc32(of), ...found });
  try {
    makeFolder(path.dirname(file));
    await writeAtomically(file, Buffer.concat([Buffer.from(`${head}\n`), of]), { flush: false });
  } catch {
    // Sizes are counted again next time.
  }
}
