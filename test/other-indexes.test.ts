import { createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildShardIndex, daliIndex, openSource, SIDECARS, sidecarPath, tar, widsIndex } from '@shardtool/format';
import { convert, indexShards, pack } from '@shardtool/writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jpeg, newFolder, tree } from './pack-workbench.js';
import { pythonWith, runPython } from './python.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-other-indexes-'));
afterAll(() => rmSync(folder, { recursive: true }));
const photos = fileURLToPath(new URL('../examples/photos/', import.meta.url));
const classes = ['astronaut', 'cat', 'coffee'];

/** Two tars of photos with their class numbers, each with DALI's index, and one index of wids for both. */
beforeAll(async () => {
  const shards = [];
  for (const file of ['000000.tar', '000001.tar']) {
    const path = join(folder, file);
    writeShard(path, file === '000000.tar' ? 0 : 5);
    const source = await openSource(path);
    const index = await buildShardIndex(tar, source);
    await source.close();
    writeFileSync(sidecarPath('dali', path), daliIndex(index, file));
    const bytes = readFileSync(path);
    shards.push({
      file,
      samples: index.samples,
      bytes: bytes.length,
      md5: createHash('md5').update(bytes).digest('hex'),
    });
  }
  writeFileSync(join(folder, SIDECARS.wids.fileName()), widsIndex(shards));
});

function writeShard(path: string, firstPhoto: number): void {
  const fd = openSync(path, 'wx');
  const writer = tar.createWriter(fd, path);
  for (const [cls, name] of classes.entries()) {
    for (const photo of readdirSync(join(photos, name)).slice(firstPhoto, firstPhoto + 5)) {
      const image = readFileSync(join(photos, name, photo));
      const fields = [
        { name: 'cls', bytes: 1 },
        { name: 'jpg', bytes: image.length },
      ];
      const [digits, place] = writer.begin(`${name}/${photo.slice(0, -4)}`, fields);
      digits!.set(Buffer.from(String(cls)));
      place!.set(image);
      writer.commit();
    }
  }
  writer.finish();
  closeSync(fd);
}

/** wids imports PyTorch for the base classes of its datasets, but not for anything that is tested here: a stub is enough. */
const IMPORT_WIDS = `
import sys, types, typing
try:
    import torch
except ImportError:
    for name in ["torch", "torch.distributed", "torch.utils", "torch.utils.data"]:
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torch"].distributed = sys.modules["torch.distributed"]
    base = typing.Generic[typing.TypeVar("T")]
    sys.modules["torch.utils.data"].Dataset = types.new_class("Dataset", (base,))
    sys.modules["torch.utils.data"].Sampler = types.new_class("Sampler", (base,))
import wids
`;

function hasWids(): boolean {
  if (pythonWith('numpy') === null) return false;
  try {
    return runPython<boolean>(`${IMPORT_WIDS}\nprint("true")`, null);
  } catch (error) {
    if (process.env.SHARDTOOL_REQUIRE_PYTHON) throw error;
    console.log('wids is not here: the test that needs it is skipped');
    return false;
  }
}

test.runIf(hasWids())('wids opens the dataset by its index and finds every sample by its number', () => {
  const program = `${IMPORT_WIDS}
import hashlib, json, os
folder, name = json.load(sys.stdin)
os.environ["WIDS_CACHE"] = os.path.join(folder, "cache")
stdout, sys.stdout = sys.stdout, sys.stderr
dataset = wids.ShardListDataset(os.path.join(folder, name), transformations=[])
samples = [dataset[i] for i in range(len(dataset))]
found = [[s["__key__"], s[".cls"].read().decode(), hashlib.md5(s[".jpg"].read()).hexdigest()] for s in samples]
md5 = [wids.wids.compute_file_md5sum(os.path.join(folder, os.path.basename(s["url"]))) for s in dataset.shards]
assert md5 == [s["md5sum"] for s in dataset.shards]
stdout.write(json.dumps(found))
`;
  const found = runPython<[string, string, string][]>(program, [folder, SIDECARS.wids.fileName()]);
  const wanted = [0, 5].flatMap((first) =>
    classes.flatMap((name, cls) =>
      readdirSync(join(photos, name))
        .slice(first, first + 5)
        .map((photo) => {
          const md5 = createHash('md5').update(readFileSync(join(photos, name, photo)));
          return [`${name}/${photo.slice(0, -4)}`, String(cls), md5.digest('hex')];
        }),
    ),
  );
  expect(found).toEqual(wanted);
});

test("the offsets in DALI's index are those of the payloads, in tar blocks", () => {
  const bytes = readFileSync(join(folder, '000001.tar'));
  const [head, ...lines] = readFileSync(join(folder, '000001.idx'), 'utf8').trimEnd().split('\n');
  expect(head).toBe('v1.2 15');
  expect(lines.length).toBe(15);
  for (const line of lines) {
    const words = line.split(' ');
    expect([words.length, words[0], words[4]]).toEqual([8, 'cls', 'jpg']);
    const image = readFileSync(join(photos, words[7]!));
    expect(bytes.subarray(Number(words[5]), Number(words[5]) + Number(words[6])).equals(image)).toBe(true);
    expect(bytes.toString('latin1', Number(words[1]), Number(words[1]) + 1)).toBe(
      String(classes.indexOf(words[7]!.split('/')[0]!)),
    );
  }
});

test('a pack, a conversion and an index for wids reject names that wids would misread', async () => {
  const name = `${'long/'.repeat(20)}name`;
  const source = tree({ [`${name}.jpg`]: jpeg(1), 'Größe/1.jpg': jpeg(2) });
  const refused = { name: 'EntryNameError', message: expect.stringContaining('so wids would read it wrongly') };
  await expect(pack(source, newFolder(), { workers: 1, index: ['wids'] })).rejects.toMatchObject(refused);
  const output = newFolder();
  await pack(source, output, { workers: 1, exclude: ['long/**'] });
  await expect(indexShards([output], { index: ['wids'] })).rejects.toMatchObject(refused);
  await expect(convert(output, newFolder(), { workers: 1, index: ['wids'] })).rejects.toMatchObject(refused);
});
