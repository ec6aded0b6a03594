import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from '@shardtool/base';
import { fieldPayload, indexPathOf, readManifest, readShardIndex } from '@shardtool/format';
import { expect } from 'vitest';
import { emptyFolder } from './datasets.js';

/** Small images of the fixtures, by their kind. */
export const JPEG = readFileSync('test/fixtures/odd-images/one-pixel.jpg');
export const PNG = readFileSync('test/fixtures/odd-images/palette.png');

/** A JPEG that differs from others by a comment segment. */
export function jpeg(comment: string | number): Buffer {
  const text = Buffer.from(String(comment));
  const segment = Buffer.from([0xff, 0xfe, 0, text.length + 2]);
  return Buffer.concat([JPEG.subarray(0, 2), segment, text, JPEG.subarray(2)]);
}

/** Creates a folder with these files; the value is the content of a file. */
export function tree(files: Readonly<Record<string, string | Uint8Array>>): string {
  const root = emptyFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), content);
  }
  return root;
}

/** A folder that does not exist yet. */
export function newFolder(): string {
  return path.join(emptyFolder(), 'shards');
}

/** A disk with this many KiB, if the machine allows mounting one; otherwise an ordinary folder. */
export function smallDisk(kib: number) {
  const folder = emptyFolder();
  const mount = (...args: string[]) => spawnSync('mount', args).status === 0;
  const isMounted = mount('-t', 'tmpfs', '-o', `size=${kib}k`, 'none', folder);
  return {
    ...{ folder, isMounted },
    resize: (to: number) => mount('-o', `remount,size=${to}k`, folder),
    unmount: () => isMounted && spawnSync('umount', [folder]),
  };
}

/** All files below a folder, sorted. */
export function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true }) as string[];
  return entries.filter((entry) => statSync(path.join(folder, entry)).isFile()).sort();
}

/** The same with the sha256 of each. */
export function digestsOf(folder: string): Record<string, string> {
  const digest = (file: string) =>
    createHash('sha256')
      .update(readFileSync(path.join(folder, file)))
      .digest('hex');
  // Records of changes have the time of the commit.
  const files = filesIn(folder).filter((file) => !file.startsWith('versions/log/'));
  return Object.fromEntries(files.map((file) => [file, digest(file)]));
}

/** The same without files that differ after a conversion: the record of the source, and the list of skipped files. */
export function datasetDigestsOf(folder: string): Record<string, string> {
  const { 'pack.json': _, 'skipped.jsonl': __, ...digests } = digestsOf(folder);
  return digests;
}

/** A sample as stored in a dataset. */
export interface PackedSample {
  readonly key: string;
  readonly source: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly cls: number;
  readonly size: readonly number[];
  readonly orientation: number;
  readonly columns: Readonly<Record<string, unknown>>;
}

/** Every sample of a dataset in its order, payloads as latin1; each is checked against its crc32. */
export async function samplesOf(output: string): Promise<PackedSample[]> {
  const samples: PackedSample[] = [];
  for (const shard of (await readManifest(output)).shards) {
    const bytes = readFileSync(path.join(output, shard.file));
    expect([bytes.length, crc32(bytes).toString(16).padStart(8, '0')]).toEqual([shard.bytes, shard.crc32]);
    const index = await readShardIndex(path.join(output, indexPathOf(shard.file)));
    expect(index.samples).toBe(shard.samples);
    for (let row = 0; row < index.samples; row++) {
      const fields: Record<string, string> = {};
      for (const [name, columns] of index.fields) {
        const offset = columns.offset[row]!;
        if (offset === -1) continue;
        const stored = bytes.subarray(offset, offset + columns.bytes[row]!);
        const payload = fieldPayload(stored, columns.msgpack?.[row] === 1);
        expect(crc32(payload)).toBe(columns.crc32![row]);
        fields[name] = Buffer.from(payload).toString('latin1');
      }
      samples.push({
        key: index.key[row]!,
        source: index.source[row]!,
        fields,
        cls: index.cls[row]!,
        size: [index.width[row]!, index.height[row]!],
        orientation: index.orientation[row]!,
        columns: Object.fromEntries([...index.columns].map(([name, values]) => [name, values[row]])),
      });
    }
  }
  return samples;
}
