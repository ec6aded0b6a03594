import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lmdbImages } from '@shardtool/format';
import { afterAll, expect, test } from 'vitest';
import { runPython, systemPythonWith } from './python.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-lsun-'));
afterAll(() => rmSync(folder, { recursive: true }));
const photos = fileURLToPath(new URL('../examples/photos/', import.meta.url));
const python = systemPythonWith('torchvision', 'lmdb', 'PIL');

test.runIf(python)("torchvision's LSUN opens a shard of images only, with every image in it", () => {
  const files = readdirSync(join(photos, 'cat')).map((name) => join(photos, 'cat', name));
  const place = join(folder, 'classroom_val_lmdb');
  mkdirSync(place);
  const fd = openSync(join(place, 'data.mdb'), 'wx');
  const writer = lmdbImages.createWriter(fd, place);
  for (const path of files) {
    const bytes = readFileSync(path);
    writer.begin(basename(path, '.jpg'), [{ name: 'jpg', bytes: bytes.length }])[0]!.set(bytes);
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  // LSUN stores a list of keys in the current folder.
  const program = `
import json, os, sys
import torchvision
from PIL import Image
folder, files = json.load(sys.stdin)
os.chdir(folder)
dataset = torchvision.datasets.LSUN(folder, classes=["classroom_val"])
wanted = [Image.open(path).convert("RGB") for path in sorted(files)]
same = [dataset[i][0].tobytes() == wanted[i].tobytes() and dataset[i][1] == 0 for i in range(len(dataset))]
print(json.dumps([len(dataset), all(same)]))
`;
  expect(runPython(program, [folder, files], python!)).toEqual([files.length, true]);
});
