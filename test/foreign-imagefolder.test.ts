import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { jpeg, newFolder, tree } from './pack-workbench.js';
import { pythonWith, runPython, systemPythonWith } from './python.js';

/** Names whose order differs between code points, UTF-16 units, case-insensitive letters, and numbers. */
const names = ['b', 'B', 'a10', 'a2', 'a 1', 'ä', 'ａ', '𐐷', 'z_1', 'z-1', 'Z', '7', '10', '_', 'e\u0301', 'é'];

/** Each class has different images, also in nested folders. */
const source = tree(
  Object.fromEntries(
    names.flatMap((name) => [1, 2].map((i) => [`${name}/${i === 2 ? 'deep/er/' : ''}${i}.jpg`, jpeg(name + i)])),
  ),
);
const elsewhere = tree({ 'x.jpg': jpeg('elsewhere') });
symlinkSync(elsewhere, path.join(source, 'linked'));
// A file next to the class folders has no class.
mkdirSync(path.join(source, 'b', 'empty'));

/** The packed dataset: classes in the order of their numbers, and the class number of each image. */
async function packedClasses(): Promise<{ classes: readonly string[]; images: Record<string, number> }> {
  const output = newFolder();
  await pack(source, output, { workers: 1, maxShardSamples: 5 });
  const dataset = await openDataset(output);
  const images: Record<string, number> = {};
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const index = await dataset.files.wholeIndex(shard);
    for (const [row, file] of index.source.entries()) images[file] = index.cls[row]!;
  }
  await dataset.close();
  return { classes: dataset.classes, images };
}

const packed = await packedClasses();

test('classes are numbered by their names in the order of code points', () => {
  const byCodePoint = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  expect(packed.classes).toEqual([...names, 'linked'].sort(byCodePoint));
  expect(Object.keys(packed.images)).toHaveLength(names.length * 2 + 1);
});

test.skipIf(pythonWith() === null)(
  "classes are numbered as by torchvision's ImageFolder, which sorts names in Python",
  () => {
    const rule = `
import json, os, sys
print(json.dumps(sorted(entry.name for entry in os.scandir(json.load(sys.stdin)) if entry.is_dir())))`;
    expect(packed.classes).toEqual(runPython(rule, source));
  },
);

const torch = systemPythonWith('torchvision');
test.skipIf(torch === null)("torchvision's ImageFolder gives every image the same class number", () => {
  const program = `
import json, os, sys
from torchvision.datasets import ImageFolder
folder = ImageFolder(json.load(sys.stdin))
print(json.dumps({"classes": folder.classes, "images": {os.path.relpath(path, folder.root): cls for path, cls in folder.samples}}))`;
  expect(packed).toEqual(runPython(program, source, torch!));
});
