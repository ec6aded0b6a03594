import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { lmdb, type WrittenLayout } from '@shardtool/format';

/** A sample with one image: its key, the length of the image, and the byte that fills it. */
export type Filled = readonly [key: string, bytes: number, fill: number];

/** Writes `data.mdb` into a new folder and returns the folder. */
export function writeDatabase(folder: string, samples: Iterable<Filled>, layout: WrittenLayout = lmdb): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, layout.innerFile!);
  const fd = openSync(path, 'wx');
  const writer = layout.createWriter(fd, path);
  for (const [key, bytes, fill] of samples) {
    writer.begin(key, [{ name: 'jpg', bytes }])[0]!.fill(fill);
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  return folder;
}

/**
 * Kinds of databases, by name: with no or many entries, values of every critical length, and keys that
 * make trees deep and flat. Values are images only, so that their length is that of the value.
 */
export const shapes: Readonly<Record<string, () => Iterable<Filled>>> = {
  empty: () => [],
  one: () => [['only', 5, 1]],
  oneEmpty: () => [['only', 0, 0]],
  oneLarge: () => [['only', 100_000, 1]],
  edges: () => edgeSizes().map((bytes, i) => [`k${bytes}`, bytes, i & 255]),
  edgesShuffled: () => edgeSizes().map((bytes, i) => [`k${(i * 37) % 1000}-${bytes}`, bytes, i & 255]),
  rising: () => numbered(12_000, (i) => [`${i}`.padStart(8, '0'), i % 50, i & 255]),
  shuffled: () => numbered(12_000, (i) => [`${(i * 7919) % 12_000}`, i % 50, i & 255]),
  longKeys: () => numbered(3000, (i) => [`${'x'.repeat(500)}${(i * 7) % 3000}`.slice(0, 511), i % 40, i & 255]),
  longSeparators: () => numbered(2000, (i) => [`${'y'.repeat(505)}${String(i).padStart(6, '0')}`, 2000, i & 255]),
  letters: () => numbered(255, (i) => [String.fromCodePoint(0x100 + i * 40), i * 31, i]),
  mixed: () => numbered(4000, (i) => [`m/${(i * 1009) % 4000}`, (i * 131) % 7000, i & 255]),
};

function edgeSizes(): number[] {
  const sizes = [0, 1, 2, 3];
  for (const around of [2026, 2038, 4080, 4096, 8176, 12_272, 65_536]) {
    for (let bytes = around - 8; bytes <= around + 8; bytes++) sizes.push(bytes);
  }
  return [...new Set(sizes)];
}

function* numbered(count: number, make: (i: number) => Filled): Generator<Filled> {
  for (let i = 0; i < count; i++) yield make(i);
}
