import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { newToken, ShardtoolError, temporaryName } from '@shardtool/base';
import { openDataset } from '@shardtool/reader';
import { type Fault, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { jpeg } from './pack-workbench.js';
import { pythonWith } from './python.js';
import { archive, entry, header, pax, record } from './tar-craft.js';

const fixtures = 'test/fixtures/tar';
const classes = ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'];
const expected: Record<string, { samples: { key: string; fields: Record<string, string> }[] }> = JSON.parse(
  readFileSync(path.join(fixtures, 'expected.json'), 'utf8'),
);

/** Photos with a `.cls` next to each, as GNU tar packs them: one tar per class. */
function photoTars(): string {
  const [files, folder] = [emptyFolder(), emptyFolder()];
  cpSync('examples/photos', files, { recursive: true });
  for (const [number, name] of classes.entries()) {
    for (const photo of readdirSync(path.join(files, name))) {
      writeFileSync(path.join(files, name, photo.replace('.jpg', '.cls')), `${number}\n`);
    }
    const tar = spawnSync('tar', ['--sort=name', '-cf', path.join(folder, `photos-${number}.tar`), '-C', files, name]);
    expect(tar.status).toBe(0);
  }
  return folder;
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function samplesOf(location: string | readonly string[]) {
  const dataset = await openDataset(location);
  const samples: { key: string; cls: number; fields: Record<string, string> }[] = [];
  for await (const { key, label: cls, fields } of dataset.samples({ checksum: true })) {
    const hashes = Object.entries(fields).map(([name, bytes]) => [name, sha256(bytes)]);
    samples.push({ key, cls, fields: Object.fromEntries(hashes) });
  }
  await dataset.close();
  return samples;
}

test.each(Object.keys(expected))('%s opens as a dataset with the same samples as with webdataset', async (name) => {
  const found = (await samplesOf(path.join(fixtures, name))).map(({ key, fields }) => ({ key, fields }));
  expect(found).toEqual(expected[name]!.samples.map(({ key, fields }) => ({ key, fields })));
});

test('a folder and a list of tars are one dataset, in the order of the names and of the list', async () => {
  const folder = emptyFolder();
  for (const name of ['webdataset-0.tar', 'gnu-ustar.tar'])
    copyFileSync(path.join(fixtures, name), path.join(folder, name));
  const keys = async (location: string | readonly string[]) => (await samplesOf(location)).map(({ key }) => key);
  const [first, second] = ['gnu-ustar.tar', 'webdataset-0.tar'].map((name) =>
    expected[name]!.samples.map(({ key }) => key),
  );
  expect(await keys(folder)).toEqual([...first!, ...second!]);
  const tars = ['webdataset-0.tar', 'gnu-ustar.tar'].map((name) => path.join(folder, name));
  expect(await keys(tars)).toEqual([...second!, ...first!]);
});

test("img2dataset's own Parquet file next to a tar is kept: the tar opens, and its index gets another name", async () => {
  const folder = emptyFolder();
  copyFileSync(path.join(fixtures, 'webdataset-0.tar'), path.join(folder, '00000.tar'));
  copyFileSync('test/fixtures/img2dataset/00000.parquet', path.join(folder, '00000.parquet'));
  writeFileSync(path.join(folder, '00000.idx'), 'v1.2 0\n');
  const theirs = readFileSync(path.join(folder, '00000.parquet'));
  const samples = await samplesOf(folder);
  expect(samples).toHaveLength(expected['webdataset-0.tar']!.samples.length);
  for (const overwrite of [false, true]) {
    expect(await indexShards([folder], { overwrite })).toMatchObject({ shards: 1, samples: samples.length });
  }
  expect(await indexShards([folder])).toMatchObject({ shards: 0, kept: 1 });
  expect(readdirSync(folder).sort()).toEqual(['00000.idx', '00000.parquet', '00000.tar', '00000.tar.shardtool']);
  expect(readFileSync(path.join(folder, '00000.parquet'))).toEqual(theirs);
  expect(await samplesOf(folder)).toEqual(samples);
  await expect(indexShards([folder], { index: ['dali'] })).rejects.toThrow('00000.idx was not written by shardtool');
  expect(readFileSync(path.join(folder, '00000.idx'), 'utf8')).toBe('v1.2 0\n');
});

test('several processes can index the same shards concurrently, and files of a killed process are removed', async () => {
  const folder = photoTars();
  const killed = temporaryName('x.parquet', newToken().replace(/^(\d+)-\d+/, '$1-1'));
  writeFileSync(path.join(folder, killed), 'half');
  const before = readdirSync(folder).filter((name) => name !== killed);
  const options = { overwrite: true, index: ['crops'] } as const;
  const reports = await Promise.all(Array.from({ length: 4 }, () => indexShards([folder], options)));
  expect(reports.every(({ shards }) => shards === reports[0]!.shards)).toBe(true);
  const added = readdirSync(folder).filter((name) => !before.includes(name));
  expect(added.every((name) => /\.(parquet|crops)$/.test(name))).toBe(true);
  expect(added).not.toEqual([]);
});

test('classes are read from the cls fields, and the loader streams the images', async () => {
  const folder = photoTars();
  const dataset = await openDataset(folder);
  expect([dataset.size, dataset.format, dataset.fields, dataset.classes]).toEqual([60, 'tar', ['cls', 'jpg'], []]);
  expect(dataset.classSamples).toEqual([10, 10, 10, 10, 10, 10]);
  const seen = new Map<string, number>();
  for await (const batch of dataset.loader({ batchSize: 16, transform: 'train224', seed: 1 })) {
    expect(batch.shape).toEqual([batch.size, 224, 224, 3]);
    for (const [row, key] of batch.keys.entries()) seen.set(key, batch.labels[row]!);
  }
  expect(seen.size).toBe(60);
  for (const [key, label] of seen) expect(classes[label]).toBe(key.split('/')[0]);
  for await (const batch of dataset.loader({ classes: [2], transform: 'raw', batchSize: 10 })) {
    expect([...batch.labels]).toEqual(new Array(10).fill(2));
    for (const [row, key] of batch.keys.entries()) {
      expect(sha256(batch.encoded![row]!)).toBe(sha256(readFileSync(`examples/photos/${key}.jpg`)));
    }
  }
  expect((await dataset.get('moon/moon_004')).label).toBe(4);
  await dataset.close();
});

/** Damages the headers of a tar and keeps its times: a second scan would fail. */
function spoilHeaders(tar: string): void {
  const { atime, mtime } = statSync(tar);
  const bytes = readFileSync(tar);
  bytes.fill(0xff, 0, 100);
  writeFileSync(tar, bytes);
  utimesSync(tar, atime, mtime);
}

test('an existing index is used instead of a second scan, and gives the same dataset', async () => {
  const folder = photoTars();
  const before = await openDataset(folder);
  const samples = await samplesOf(folder);
  expect(await indexShards([folder])).toMatchObject({ shards: 6, kept: 0, samples: 60 });
  for (const name of readdirSync(folder)) if (name.endsWith('.tar')) spoilHeaders(path.join(folder, name));
  const after = await openDataset(folder);
  for (const part of ['identity', 'size', 'fields', 'classes', 'classSamples', 'bytes'] as const) {
    expect(after[part]).toEqual(before[part]);
  }
  expect(await samplesOf(folder)).toEqual(samples);
  expect(await after.indexOf('cat/cat_003')).toBe(13);
  await before.close();
  await after.close();
});

test('the state of a loader can be resumed after the tars were indexed', async () => {
  const folder = photoTars();
  const options = { batchSize: 16, transform: 'raw', seed: 3 } as const;
  const keys = async (state: unknown) => {
    const dataset = await openDataset(folder);
    const loader = dataset.loader({ ...options, state });
    const seen: (readonly string[])[] = [];
    let saved: unknown;
    for await (const batch of loader) {
      seen.push([...batch.keys]);
      saved ??= loader.state();
    }
    await dataset.close();
    return { seen, saved };
  };
  const whole = await keys(undefined);
  await indexShards([folder]);
  expect((await keys(whole.saved)).seen).toEqual(whole.seen.slice(1));
});

test('an index that is older than its tar is not used', async () => {
  const folder = emptyFolder();
  const tar = path.join(folder, 'a.tar');
  writeFileSync(tar, archive(entry({ name: 'old.jpg' }, jpeg('old'))));
  await indexShards([tar]);
  writeFileSync(tar, archive(entry({ name: 'new.jpg' }, jpeg('new')), entry({ name: 'more.jpg' }, jpeg('more'))));
  utimesSync(tar, new Date(), new Date(Date.now() + 2000));
  expect((await samplesOf(folder)).map(({ key }) => key)).toEqual(['new', 'more']);
  expect(await indexShards([folder])).toMatchObject({ shards: 1, kept: 0, samples: 2 });
});

test('verify of foreign tars compares with existing indexes, and without them checks the headers', async () => {
  const folder = photoTars();
  expect(await verify(folder, { workers: 1, check: 'decode' })).toMatchObject({
    shards: 6,
    samples: 60,
    faults: 0,
    checksums: false,
  });
  await indexShards([folder]);
  expect(await verify(folder, { workers: 1 })).toMatchObject({ shards: 6, samples: 60, faults: 0, checksums: true });
  const tar = path.join(folder, 'photos-3.tar');
  const { atime, mtime } = statSync(tar);
  const bytes = readFileSync(tar);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(tar, bytes);
  utimesSync(tar, atime, mtime);
  const faults: Fault[] = [];
  await verify(folder, { workers: 1, onFault: (fault) => faults.push(fault) });
  expect(faults).toEqual([
    {
      shard: 'photos-3.tar',
      key: expect.stringMatching(/^galaxies\//),
      reason: expect.stringMatching(/^field "jpg" has changed/),
    },
  ]);
});

const good = entry({ name: 'good.jpg' }, jpeg('good'));
test.each([
  [
    'a path that leads out of the folder',
    entry({ name: '../x.jpg' }, 'x'),
    'EntryNameError',
    'leads out of its folder',
  ],
  ['an absolute path', entry({ name: '/x.jpg' }, 'x'), 'EntryNameError', 'is absolute'],
  ['a device', entry({ name: 'x.jpg', type: '4' }), 'UnsupportedEntryError', 'is a block device'],
  ['a sparse file', entry({ name: 'x.jpg', type: 'S', magic: 'gnu' }), 'UnsupportedEntryError', 'is a sparse file'],
  [
    'a size beyond the file',
    header({ name: 'x.jpg', size: 1e9 }),
    'TruncatedShardError',
    'is 1000000000 bytes long, but the shard ends',
  ],
  [
    'a negative size in base-256',
    header({ sizeField: Buffer.alloc(12, 0xff) }),
    'DamagedShardError',
    'the header at byte',
  ],
  [
    'a wrong checksum',
    entry({ name: 'x.jpg', checksumField: '000001\0 ' }, 'x'),
    'DamagedShardError',
    'the header at byte',
  ],
  [
    'an invalid pax record',
    Buffer.concat([pax('99 path=x\n'), entry({}, 'x')]),
    'DamagedShardError',
    'the header at byte',
  ],
  [
    'a negative pax size',
    Buffer.concat([pax(record('size', '-1')), entry({}, 'x')]),
    'DamagedShardError',
    'the header at byte',
  ],
  [
    'a repeated key',
    Buffer.concat([entry({ name: 'b.jpg' }, 'x'), entry({ name: 'good.txt' }, 'x')]),
    'DuplicateKeyError',
    'already occurred at byte 0',
  ],
])(
  '%s is rejected with shard and offset when the dataset is opened, and listed by verify',
  async (_, bad, name, words) => {
    const tar = path.join(emptyFolder(), 'crafted.tar');
    writeFileSync(tar, archive(good, bad));
    const error = await openDataset(tar).catch((failure: unknown) => failure as ShardtoolError);
    expect(error).toBeInstanceOf(ShardtoolError);
    expect(error).toMatchObject({
      name,
      shard: tar,
      offset: expect.any(Number),
      message: expect.stringContaining(words),
    });
    expect((error as ShardtoolError).offset).toBeGreaterThanOrEqual(good.length);

    const faults: Fault[] = [];
    expect(await verify(tar, { workers: 1, onFault: (fault) => faults.push(fault) })).toMatchObject({
      shards: 1,
      faults: 1,
    });
    expect(faults[0]).toMatchObject({ shard: 'crafted.tar', reason: expect.stringContaining(words) });
    await expect(indexShards([tar])).rejects.toMatchObject({ name });
  },
);

test('links in a tar are skipped without losing other samples, and a warning names the option that follows them', async () => {
  const tar = path.join(emptyFolder(), 'linked.tar');
  const links = (['1', '2'] as const).map((type) => header({ name: `link${type}.jpg`, type, linkName: 'good.jpg' }));
  writeFileSync(tar, archive(good, ...links));
  const warned: string[] = [];
  const note = (warning: Error) => warned.push(warning.message);
  process.on('warning', note);
  await using dataset = await openDataset(tar);
  expect([...(await dataset.files.index(0)).key]).toEqual(['good']);
  await new Promise(setImmediate);
  process.off('warning', note);
  expect(warned).toEqual([
    expect.stringContaining('2 links in tars were skipped (in linked.tar): "shardtool convert --links follow"'),
  ]);
  expect(await verify(tar, { workers: 1 })).toMatchObject({ samples: 1, faults: 0 });
  expect(await indexShards([tar])).toMatchObject({ samples: 1, skippedLinks: 2, skippedEntries: 0 });
});

test('an empty list, a missing tar, an empty folder and a compressed tar each have a specific error', async () => {
  await expect(openDataset([])).rejects.toThrow('give a folder of shards, or tar files');
  await expect(openDataset(['nowhere.tar'])).rejects.toThrow('nowhere.tar cannot be opened');
  await expect(openDataset(emptyFolder())).rejects.toThrow('has no dataset.json');
  const gz = path.join(emptyFolder(), 'a.tar');
  mkdirSync(path.dirname(gz), { recursive: true });
  spawnSync('sh', ['-c', `gzip -c ${fixtures}/gnu-ustar.tar > ${gz}`]);
  await expect(openDataset(gz)).rejects.toThrow('compressed with gzip');
});

test.skipIf(pythonWith('webdataset') === null)(
  'shards that the installed webdataset writes can be opened',
  async () => {
    const folder = emptyFolder();
    const program = `
import sys, webdataset, pathlib
with webdataset.ShardWriter(sys.argv[1] + "/wds-%03d.tar", maxcount=7, verbose=0) as sink:
    for number, name in enumerate(sys.argv[2].split(",")):
        for photo in sorted(pathlib.Path("examples/photos", name).glob("*.jpg")):
            sink.write({"__key__": name + "/" + photo.stem, "jpg": photo.read_bytes(), "cls": number, "json": {"name": name}})
`;
    const { status, stderr } = spawnSync(pythonWith('webdataset')!, ['-c', program, folder, classes.join(',')], {
      encoding: 'utf8',
      timeout: 120_000,
    });
    expect(status, stderr).toBe(0);
    const dataset = await openDataset(folder);
    expect([dataset.size, dataset.shards.length, dataset.classSamples]).toEqual([60, 9, [10, 10, 10, 10, 10, 10]]);
    let photos = 0;
    for await (const batch of dataset.loader({ batchSize: 20, transform: 'raw', checksum: 'always' })) {
      for (const [row, key] of batch.keys.entries()) {
        expect(sha256(batch.encoded![row]!)).toBe(sha256(readFileSync(`examples/photos/${key}.jpg`)));
        expect(batch.fields.json![row]).toEqual({ name: key.split('/')[0] });
        photos++;
      }
    }
    expect(photos).toBe(60);
    await dataset.close();
  },
);
