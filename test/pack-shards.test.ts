import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { convert, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { digestsOf, filesIn, JPEG, jpeg, newFolder, PNG, samplesOf, tree } from './pack-workbench.js';

const PHOTOS = 'examples/photos';

test('every photo is read back from its shard byte for byte, with its class and size', async () => {
  const output = newFolder();
  const report = await pack(PHOTOS, output, { maxShardSamples: 25 });
  expect(report).toMatchObject({ files: 60, samples: 60, shards: 3, quarantined: 0, renamed: 0 });
  expect(report.classes).toEqual(['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket']);
  const samples = await samplesOf(output);
  expect(samples.map(({ source }) => source).sort()).toEqual(filesIn(PHOTOS).filter((file) => file.endsWith('.jpg')));
  for (const { key, source, fields, cls, size } of samples) {
    expect(fields).toEqual({ cls: String(cls), jpg: readFileSync(path.join(PHOTOS, source), 'latin1') });
    expect(`${key}.jpg`).toBe(source);
    expect(report.classes[cls]).toBe(source.split('/')[0]);
    expect(Math.min(...size)).toBeGreaterThan(100);
  }
  const manifest = await readManifest(output);
  expect(manifest.classes).toEqual(report.classes.map((name) => ({ name, samples: 10 })));
  expect(manifest.fields).toEqual([
    { name: 'cls', samples: 60 },
    { name: 'jpg', samples: 60 },
  ]);
  expect(report.bytes).toBe(manifest.bytes);
});

test('small packs start no threads unless workers is set, and give the same result as with threads', async () => {
  let threads = 0;
  const count = () => threads++;
  process.on('worker', count);
  const [alone, shared, small, other] = [newFolder(), newFolder(), newFolder(), newFolder()];
  await pack(PHOTOS, alone, { maxShardSamples: 20 });
  await convert(alone, small, { format: 'msgpack' });
  expect(threads).toBe(0);
  await pack(PHOTOS, shared, { maxShardSamples: 20, workers: 3 });
  await convert(alone, other, { format: 'msgpack', workers: 3 });
  expect(threads).toBe(6);
  expect(digestsOf(shared)).toEqual(digestsOf(alone));
  expect(digestsOf(other)).toEqual(digestsOf(small));
  // A busy disk may look slow, and slow sources are packed in a separate process.
  const source = tree({ '1.jpg': jpeg(1), '2.jpg': jpeg(2) });
  for (const name of ['1.jpg', '2.jpg']) truncateSync(path.join(source, name), 65 << 20);
  await pack(source, newFolder(), { maxShardSamples: 1, inFlight: 1 });
  expect(threads).toBe(6 + availableParallelism());
  process.off('worker', count);
});

test('a pack with dedupe and wids starts threads only if workers is set or files are large', async () => {
  let threads = 0;
  const count = () => threads++;
  process.on('worker', count);
  const [alone, shared] = [newFolder(), newFolder()];
  const options = { maxShardSamples: 20, dedupe: true, index: ['wids'] } as const;
  await pack(PHOTOS, alone, options);
  expect(threads).toBe(0);
  await pack(PHOTOS, shared, { ...options, workers: 2 });
  expect(threads).toBe(2);
  expect(digestsOf(shared)).toEqual(digestsOf(alone));
  const long = Buffer.concat([jpeg(1), Buffer.alloc(9 << 20)]);
  const made = newFolder();
  await pack(tree({ '1.jpg': long, '2.jpg': long }), made, { dedupe: true, workers: 1, inFlight: 1 });
  expect(threads).toBe(3);
  expect((await readManifest(made)).samples).toBe(1);
  process.off('worker', count);
});

test('GNU tar lists the shards and finds the same bytes in them', async () => {
  const output = newFolder();
  await pack(PHOTOS, output);
  const into = tree({});
  execFileSync('tar', ['xf', path.join(output, '000000.tar'), '-C', into]);
  expect(readFileSync(path.join(into, 'cat/cat_003.jpg'))).toEqual(readFileSync(path.join(PHOTOS, 'cat/cat_003.jpg')));
  expect(readFileSync(path.join(into, 'cat/cat_003.cls'), 'utf8')).toBe('1');
});

test.each(['tar', 'lmdb', 'msgpack'] as const)(
  'in %s, two packs have the same bytes for any number of workers',
  async (format) => {
    const packed = async (workers: number) => {
      const output = newFolder();
      await pack(PHOTOS, output, { format, workers, maxShardSamples: 9 });
      return digestsOf(output);
    };
    const alone = await packed(1);
    expect(Object.keys(alone)).toHaveLength(7 * 2 + 3);
    expect(await packed(3)).toEqual(alone);
  },
);

test('images that are encoded again have the same bytes for any number of workers', async () => {
  const packed = async (workers: number) => {
    const output = newFolder();
    await pack(PHOTOS, output, {
      workers,
      resize: 64,
      imageFormat: 'webp',
      include: ['cat/**', 'moon/**'],
      maxShardSamples: 5,
    });
    return { output, digests: digestsOf(output) };
  };
  const alone = await packed(1);
  expect((await packed(3)).digests).toEqual(alone.digests);
  for (const { fields, size } of await samplesOf(alone.output)) {
    expect(Object.keys(fields)).toEqual(['cls', 'webp']);
    expect(Math.min(...size)).toBe(64);
  }
});

test('the samples of all formats are the same, in the same shards', async () => {
  const [tar, lmdb, msgpack] = await Promise.all(
    (['tar', 'lmdb', 'msgpack'] as const).map(async (format) => {
      const output = newFolder();
      await pack(PHOTOS, output, { format, maxShardBytes: 800_000 });
      return {
        samples: await samplesOf(output),
        shards: (await readManifest(output)).shards.map(({ samples }) => samples),
      };
    }),
  );
  expect(lmdb).toEqual(tar);
  expect(msgpack).toEqual(tar);
});

test('no shard is larger than requested, and shards are about equal in size', async () => {
  const output = newFolder();
  await pack(PHOTOS, output, { maxShardBytes: 700_000, name: 'train' });
  const sizes = (await readManifest(output)).shards.map(({ bytes }) => bytes);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(700_000);
  expect(Math.min(...sizes)).toBeGreaterThan(350_000);
  expect(existsSync(path.join(output, 'train-000000.tar'))).toBe(true);
  expect(existsSync(path.join(output, 'train-000000.parquet'))).toBe(true);
});

test('the seed and --no-shuffle give different orders of the same samples', async () => {
  const keys = async (options: object) => {
    const output = newFolder();
    await pack(PHOTOS, output, options);
    return (await samplesOf(output)).map(({ key }) => key);
  };
  const [zero, one, sorted] = await Promise.all([keys({}), keys({ seed: 1 }), keys({ shuffle: false })]);
  expect(one).not.toEqual(zero);
  expect(sorted).toEqual([...zero].sort());
  expect([...one].sort()).toEqual(sorted);
});

test('files next to an image become its fields, and other files are skipped and counted', async () => {
  const source = tree({
    'cat/1.jpg': jpeg(1),
    'cat/1.json': '{"box":[1,2]}',
    'cat/1.txt': 'a cat',
    'cat/1.seg.png': PNG,
    'cat/2.JPEG': jpeg(2),
    'cat/notes.md': 'nothing',
    README: 'nothing',
  });
  const output = newFolder();
  const report = await pack(source, output, { fields: ['seg.png'], shuffle: false });
  expect(report).toMatchObject({ files: 5, samples: 2, skippedFiles: 2 });
  const [one, two] = await samplesOf(output);
  expect(one!.fields).toEqual({
    cls: '0',
    jpg: jpeg(1).toString('latin1'),
    json: '{"box":[1,2]}',
    'seg.png': PNG.toString('latin1'),
    txt: 'a cat',
  });
  expect(Object.keys(two!.fields)).toEqual(['cls', 'jpeg']);
});

test('a .cls file next to an image is its class, unless the image has a class already', async () => {
  const output = newFolder();
  await pack(tree({ '1.jpg': jpeg(1), '1.cls': '7\n', '2.jpg': jpeg(2) }), output, { shuffle: false });
  expect((await samplesOf(output)).map(({ cls, fields }) => [cls, fields.cls])).toEqual([
    [7, '7\n'],
    [-1, undefined],
  ]);

  const foldered = newFolder();
  const report = await pack(tree({ 'a/1.jpg': jpeg(1), 'a/1.cls': '7' }), foldered);
  expect(report.skippedFiles).toBe(1);
  expect((await samplesOf(foldered)).map(({ cls, fields }) => [cls, fields.cls])).toEqual([[0, '0']]);
});

test('labels in CSV give classes and columns of the index', async () => {
  const source = tree({
    'img/a, 1.jpg': jpeg(1),
    'img/b.jpg': jpeg(2),
    'img/c.jpg': jpeg(3),
    'img/b.txt': 'beside',
    'labels.csv': 'path,class,caption,score\n"img/a, 1.jpg",dog,"a ""dog"", asleep",0.5\nimg/b.jpg,cat,,2\n',
  });
  const output = newFolder();
  const report = await pack(source, output, { labels: path.join(source, 'labels.csv'), shuffle: false });
  expect(report).toMatchObject({ classes: ['cat', 'dog'], samples: 2, skippedFiles: 1 });
  expect((await samplesOf(output)).map(({ source: from, cls, columns }) => [from, cls, columns])).toEqual([
    ['img/a, 1.jpg', 1, { caption: 'a "dog", asleep', score: 0.5 }],
    ['img/b.jpg', 0, { caption: null, score: 2 }],
  ]);
  expect((await readManifest(output)).columns).toEqual([
    { name: 'caption', type: 'string' },
    { name: 'score', type: 'double' },
  ]);
});

test('labels in JSON Lines give typed columns, and whole numbers are the classes themselves', async () => {
  const source = tree({
    'a.jpg': jpeg(1),
    'b.jpg': jpeg(2),
    'labels.jsonl': '{"path":"b.jpg","class":3,"ok":true}\n{"path":"a.jpg","class":0,"ok":false,"id":9}\n',
  });
  const output = newFolder();
  await pack(source, output, { labels: path.join(source, 'labels.jsonl'), shuffle: false, maxShardSamples: 1 });
  expect((await samplesOf(output)).map(({ cls, columns }) => [cls, columns])).toEqual([
    [0, { ok: false, id: 9 }],
    [3, { ok: true, id: null }],
  ]);
  expect((await readManifest(output)).classes).toHaveLength(4);
});

test('a list of files, patterns, and a list of classes determine what is packed and how it is numbered', async () => {
  const source = tree({
    'a/1.jpg': jpeg(1),
    'a/2.png': PNG,
    'b/1.jpg': jpeg(2),
    'c/1.jpg': jpeg(3),
    'classes.txt': 'c\nb\na\n',
  });
  const sources = async (options: object) => {
    const output = newFolder();
    await pack(source, output, { shuffle: false, ...options });
    return (await samplesOf(output)).map(({ source: from, cls }) => [from, cls]);
  };
  expect(await sources({ files: ['c/1.jpg', 'a/1.jpg'] })).toEqual([
    ['a/1.jpg', 0],
    ['c/1.jpg', 1],
  ]);
  expect(await sources({ include: ['**/*.jpg'], exclude: ['b/**'] })).toEqual([
    ['a/1.jpg', 0],
    ['c/1.jpg', 1],
  ]);
  expect(await sources({ classes: path.join(source, 'classes.txt') })).toEqual([
    ['a/1.jpg', 2],
    ['a/2.png', 2],
    ['b/1.jpg', 1],
    ['c/1.jpg', 0],
  ]);
});

test('a dry run reports what would be packed and changes nothing', async () => {
  const output = newFolder();
  const report = await pack(PHOTOS, output, { dryRun: true, maxShardSamples: 7 });
  expect(report).toMatchObject({ files: 60, samples: 60, shards: 9, bytes: 0 });
  expect(report.sourceBytes).toBeGreaterThan(2_000_000);
  expect(existsSync(output)).toBe(false);
});

test('progress ends with everything done', async () => {
  const seen: string[] = [];
  let last: unknown;
  await pack(PHOTOS, newFolder(), {
    onProgress: (progress) => {
      seen.push(progress.stage);
      last = progress;
    },
  });
  expect(seen.at(-1)).toBe('commit');
  expect(last).toMatchObject({ files: 60, totalFiles: 60 });
});

test('orientation is applied if images are encoded again, counted, and otherwise kept in the index', async () => {
  const rotated = readFileSync('test/fixtures/odd-images/exif-rotated-6.jpg');
  const source = tree({ 'a.jpg': rotated });
  const [plain, encoded] = [newFolder(), newFolder()];
  expect((await pack(source, plain)).orientationBaked).toBe(0);
  expect((await samplesOf(plain))[0]).toMatchObject({ size: [240, 320], orientation: 6 });
  expect((await pack(source, encoded, { quality: 80 })).orientationBaked).toBe(1);
  expect((await samplesOf(encoded))[0]).toMatchObject({ size: [320, 240], orientation: 1 });
});

test('overwriting removes everything of the earlier pack, and nothing else', async () => {
  const output = newFolder();
  await pack(PHOTOS, output, { maxShardSamples: 5, name: 'old', format: 'lmdb' });
  writeFileSync(path.join(output, 'notes.txt'), 'mine');
  await pack(PHOTOS, output, { overwrite: true });
  expect(filesIn(output)).toEqual([
    '000000.parquet',
    '000000.tar',
    'dataset.json',
    'notes.txt',
    'pack.json',
    'skipped.jsonl',
  ]);
  expect(existsSync(path.join(output, 'old-000000.lmdb'))).toBe(false);
});

test('misnamed images are stored with the extension of their real kind, in the position of their name', async () => {
  const source = tree({ 'a/1.jpg': PNG, 'a/1.txt': 'beside', 'a/2.png': JPEG, 'a/3.jpeg': JPEG });
  const output = newFolder();
  const report = await pack(source, output, { shuffle: false });
  expect(report.renamed).toBe(2);
  const fields = (await samplesOf(output)).map((sample) => sample.fields);
  expect(fields[0]).toEqual({ cls: '0', png: PNG.toString('latin1'), txt: 'beside' });
  expect(Object.keys(fields[1]!)).toEqual(['cls', 'jpg']);
  expect(Object.keys(fields[2]!)).toEqual(['cls', 'jpeg']);
  const listed = execFileSync('tar', ['tf', path.join(output, '000000.tar')], { encoding: 'utf8' });
  expect(listed.split('\n').slice(0, 3)).toEqual(['a/1.cls', 'a/1.png', 'a/1.txt']);
});
