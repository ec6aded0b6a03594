import { crc32 } from 'node:zlib';
import { type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';

/** The properties of a batch that tests compare: batches themselves are only valid until the next one. */
export interface Seen {
  readonly epoch: number;
  readonly keys: readonly string[];
  readonly labels: readonly number[];
  readonly valid: readonly number[];
  /** crc32 of each row's pixels, or of its encoded image. */
  readonly rows: readonly number[];
}

export function look({ epoch, keys, labels, valid, images, encoded, size }: Batch): Seen {
  const rows = encoded?.map((bytes) => crc32(bytes)) ?? [];
  if (images !== null) {
    const bytes = new Uint8Array(images.buffer, images.byteOffset, images.byteLength);
    const length = bytes.length / size;
    for (let row = 0; row < size; row++) rows.push(crc32(bytes.subarray(row * length, (row + 1) * length)));
  }
  return { epoch, keys: [...keys], labels: [...labels], valid: [...valid], rows };
}

/** All batches of one iteration. */
export async function batchesOf(location: string, options: LoaderOptions): Promise<Seen[]> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ workers: 1, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  return seen;
}

export const keysOf = (seen: readonly Seen[]): string[] => seen.flatMap(({ keys }) => keys);

/** The keys of the valid rows. */
export const validKeysOf = (seen: readonly Seen[]): string[] =>
  seen.flatMap(({ keys, valid }) => keys.filter((_, row) => valid[row] === 1));

/** One line per valid row, with everything that must be equal in equal runs. */
export const linesOf = (seen: readonly Seen[]): string[] =>
  seen.flatMap(({ epoch, keys, labels, rows, valid }) =>
    keys.map((key, row) => `${epoch} ${key} ${labels[row]} ${rows[row]}`).filter((_, row) => valid[row] === 1),
  );
