import type { StoredDataset } from '../dataset/stored-dataset.js';

export interface SampleName {
  readonly key: string;
  readonly cls: number;
}

/** Keys and class numbers of samples, by index. `numbers` are the indices. */
export async function namesOf(
  { shards, files }: StoredDataset,
  numbers: readonly number[],
): Promise<Map<number, SampleName>> {
  const names = new Map<number, SampleName>();
  const sorted = Float64Array.from(new Set(numbers)).sort();
  let next = 0;
  for (const [shard, file] of shards.entries()) {
    const first = files.firstSample[shard]!;
    const end = first + file.samples;
    if (next >= sorted.length) break;
    if (sorted[next]! >= end) continue;
    const { key, cls } = await file.loadParts(['key', 'cls']);
    for (; next < sorted.length && sorted[next]! < end; next++) {
      const row = sorted[next]! - first;
      names.set(sorted[next]!, { key: key[row]!, cls: cls[row]! });
    }
  }
  return names;
}

/** The class numbers of all samples. */
export async function classesOf({ shards, files, size }: StoredDataset): Promise<Int32Array> {
  const all = new Int32Array(size);
  for (const [shard, file] of shards.entries()) all.set((await file.loadParts(['cls'])).cls, files.firstSample[shard]!);
  return all;
}
