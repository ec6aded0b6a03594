import { spawnSync } from 'node:child_process';
import { copyFileSync, createReadStream, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { openDataset } from '@shardtool/reader';
import { convert } from '@shardtool/writer';
import fc from 'fast-check';
import { type Header, pack as tarPack } from 'tar-stream';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { digestsOf, filesIn, JPEG, newFolder, PNG, samplesOf } from './pack-workbench.js';

/** An archive of these files, written with tar-stream. */
async function tarOf(files: readonly (readonly [name: string, content: string | Uint8Array])[]): Promise<Buffer> {
  const archive = tarPack();
  for (const [name, content] of files) archive.entry({ name }, Buffer.from(content));
  archive.finalize();
  const chunks: Uint8Array[] = [];
  for await (const chunk of archive) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

/** `files`, compressed by zstd 1.5 in two frames. */
const ZSTD = 'test/fixtures/tar/two-frames.tar.zst';

/** The same bytes in pieces of these sizes, repeatedly. */
function inPieces(bytes: Buffer, sizes: readonly number[]): Readable {
  function* pieces(): Generator<Buffer> {
    for (let at = 0, i = 0; at < bytes.length; i++) {
      const end = at + sizes[i % sizes.length]!;
      yield bytes.subarray(at, end);
      at = end;
    }
  }
  return Readable.from(pieces());
}

const long = `folder/${'n'.repeat(150)}`;
const files = [
  ['./.hidden', 'x'],
  ['README', 'x'],
  ['a/1.jpg', JPEG],
  ['a/1.cls', '3\n'],
  ['a/1.seg.PNG', PNG],
  ['a/2.png', PNG],
  ['a/2.cls', 'none'],
  [`${long}.jpg`, JPEG],
  ['caf\u00e9.txt', 'caf\u00e9'],
  ['empty.txt', ''],
] as const;

test('a stream is grouped as by WebDataset, its images are measured, and every byte is kept', async () => {
  const output = newFolder();
  const report = await convert(Readable.from([await tarOf(files)]), output);
  expect(report).toMatchObject({ samples: 5, shards: 1, skippedEntries: 2 });
  const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');
  const [one, two, three, ...texts] = await samplesOf(output);
  expect(one).toMatchObject({ key: 'a/1', cls: 3, size: [1, 1], orientation: 1 });
  expect(one!.fields).toEqual({ jpg: latin1(JPEG), cls: '3\n', 'seg.png': latin1(PNG) });
  expect(two).toMatchObject({ key: 'a/2', cls: -1, fields: { png: latin1(PNG), cls: 'none' } });
  expect(three).toMatchObject({ key: long, fields: { jpg: latin1(JPEG) } });
  expect(texts.map(({ key, fields, size }) => [key, fields, size])).toEqual([
    ['caf\u00e9', { txt: latin1(Buffer.from('caf\u00e9')) }, [0, 0]],
    ['empty', { txt: '' }, [0, 0]],
  ]);
});

test('a stream, a compressed stream and a file give the same bytes, in pieces of any size', async () => {
  const tar = await tarOf(files);
  const folder = emptyFolder();
  writeFileSync(path.join(folder, 'a.tar.gz'), gzipSync(tar));
  const wanted = newFolder();
  await convert(path.join(folder, 'a.tar.gz'), wanted, { maxShardSamples: 2, name: 'x' });
  expect(filesIn(wanted).filter((file) => file.endsWith('.tar'))).toEqual([
    'x-000000.tar',
    'x-000001.tar',
    'x-000002.tar',
  ]);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 9 }),
      fc.boolean(),
      async (sizes, gzip) => {
        const output = newFolder();
        await convert(inPieces(gzip ? gzipSync(tar) : tar, sizes), output, { maxShardSamples: 2, name: 'x' });
        // It records the source of a conversion, which is unknown for a stream.
        const [{ 'pack.json': _, ...made }, { 'pack.json': __, ...asked }] = [digestsOf(output), digestsOf(wanted)];
        expect(made).toEqual(asked);
      },
    ),
    { numRuns: 15 },
  );
});

test('shards of a stream are at most as large as requested, unless a single sample is larger', async () => {
  const tar = await tarOf(Array.from({ length: 40 }, (_, i) => [`${i}.bin`, new Uint8Array(i === 20 ? 9000 : 1000)]));
  const output = newFolder();
  await convert(Readable.from([tar]), output, { maxShardBytes: 6000 });
  const sizes = filesIn(output)
    .filter((file) => file.endsWith('.tar'))
    .map((file) => readFileSync(path.join(output, file)).length);
  expect(sizes.filter((size) => size > 6000)).toEqual([9000 + 216 + 512 + 1024]);
  expect((await samplesOf(output)).map(({ key }) => key)).toEqual(Array.from({ length: 40 }, (_, i) => String(i)));
});

test('a stream that is truncated anywhere throws an error, and nothing looks complete', async () => {
  const tar = await tarOf(files);
  const end = tar.length - 1024;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: end }), fc.boolean(), async (length, gzip) => {
      const cut = gzip
        ? gzipSync(tar).subarray(0, Math.min(length, gzipSync(tar).length - 1))
        : tar.subarray(0, length);
      const output = newFolder();
      await expect(convert(Readable.from([cut]), output, { maxShardSamples: 1 })).rejects.toThrow(
        /cut off|truncated|without the zeros/,
      );
      await expect(openDataset(output)).rejects.toMatchObject({
        name: expect.stringMatching(/UnfinishedPackError|FileNotFoundError/),
      });
    }),
    {
      numRuns: 40,
      examples: [
        [end, false],
        [end - 512, false],
        [0, false],
      ],
    },
  );
});

test.each([
  [
    'a repeated key',
    [
      ['a.jpg', 'x'],
      ['b.jpg', 'x'],
      ['a.cls', '1'],
    ],
    'the key "a" is repeated',
  ],
  [
    'a repeated field',
    [
      ['a.jpg', 'x'],
      ['a.JPG', 'x'],
    ],
    'sample "a" has the field "jpg" twice',
  ],
  ['a name that leads out of the folder', [['../a.jpg', 'x']], 'leads out of its folder'],
  ['an archive without samples', [['README', 'x']], 'contains no sample'],
] as const)('%s is an error that says so, also across shards', async (_, entries, message) => {
  const tar = await tarOf(entries);
  await expect(convert(Readable.from([tar]), newFolder(), { maxShardSamples: 1 })).rejects.toThrow(message);
});

test('the error for a stream of links only names the option that follows them', async () => {
  const archive = tarPack();
  const link: Partial<Header> & { name: string } = { name: 'a.jpg', type: 'symlink', linkname: '/etc/passwd' };
  archive.entry(link);
  archive.finalize();
  await expect(convert(archive as unknown as Readable, newFolder())).rejects.toThrow(
    'The stream contains no sample, so there is nothing to convert; a link was skipped; to use the files in the same tar that links point to, set links: "follow"',
  );
});

test('a stream that fails, or is aborted, rejects with its error', async () => {
  const broken = Readable.from(
    (function* () {
      yield Buffer.alloc(100);
      throw new Error('the line is dead');
    })(),
  );
  await expect(convert(broken, newFolder())).rejects.toThrow('the line is dead');
  const stop = new AbortController();
  const slow = new Readable({ read: () => undefined });
  setTimeout(() => stop.abort(new Error('enough')), 50);
  await expect(convert(slow, newFolder(), { signal: stop.signal })).rejects.toThrow('enough');
  await expect(convert(createReadStream('/nowhere'), newFolder())).rejects.toThrow('ENOENT');
});

/** A tar in which every image of a class folder is a link, as in datasets that share a pool of images. */
async function linkedTar(): Promise<Buffer> {
  const archive = tarPack();
  archive.entry({ name: 'cat/1.png', type: 'symlink', linkname: '../pool/a.png' });
  archive.entry({ name: 'cat/1.json' }, '{}');
  archive.entry({ name: 'pool/a.png' }, PNG);
  archive.entry({ name: 'dog/2.png', type: 'link', linkname: 'pool/a.png' });
  archive.entry({ name: 'dog/3.png', type: 'symlink', linkname: '/elsewhere/a.png' });
  archive.entry({ name: 'dog/4.jpg' }, JPEG);
  archive.finalize();
  const chunks: Uint8Array[] = [];
  for await (const chunk of archive) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

test('links in a tar are skipped and counted, or followed within the tar', async () => {
  const folder = emptyFolder();
  const input = path.join(folder, 'linked.tar');
  const bytes = await linkedTar();
  writeFileSync(input, bytes);
  const contents = async (output: string) =>
    (await samplesOf(output)).map(({ key, fields }) => [key, Object.keys(fields).sort().join()]);

  const skipped = newFolder();
  expect(await convert(input, skipped, { workers: 1 })).toMatchObject({
    samples: 2,
    skippedLinks: 3,
    // A file that belongs to no image.
    skippedEntries: 1,
  });
  expect(await contents(skipped)).toEqual([
    ['pool/a', 'cls,png'],
    ['dog/4', 'cls,jpg'],
  ]);
  const streamed = newFolder();
  expect(await convert(Readable.from([bytes]), streamed)).toMatchObject({ samples: 2, skippedLinks: 3 });
  expect(await contents(streamed)).toEqual(await contents(skipped));

  for (const format of ['tar', 'msgpack', 'mds'] as const) {
    const followed = newFolder();
    const report = await convert(input, followed, { format, links: 'follow', workers: 1 });
    expect(report).toMatchObject({ samples: 4, skippedLinks: 1, skippedEntries: 0 });
    await using dataset = await openDataset(followed);
    const found: unknown[] = [];
    for await (const { key, fields } of dataset.samples({ checksum: true })) {
      const { png = null, jpg = null } = fields;
      if (png !== null) expect(Buffer.from(png).equals(PNG)).toBe(true);
      if (jpg !== null) expect(Buffer.from(jpg).equals(JPEG)).toBe(true);
      found.push([key, png !== null, jpg !== null]);
    }
    expect(found).toEqual([
      ['cat/1', true, false],
      ['pool/a', true, false],
      ['dog/2', true, false],
      ['dog/4', false, true],
    ]);
  }
});

test('links are followed only in a tar that can be read again, and not in other layouts', async () => {
  const folder = emptyFolder();
  const bytes = await linkedTar();
  const gz = path.join(folder, 'linked.tar.gz');
  writeFileSync(gz, gzipSync(bytes));
  await expect(convert(gz, newFolder(), { links: 'follow' })).rejects.toThrow('unpack it first, or remove "links"');
  await expect(convert(Readable.from([bytes]), newFolder(), { links: 'follow' })).rejects.toThrow('unpack it first');
  const msgpack = newFolder();
  await convert(Readable.from([bytes]), msgpack, { format: 'msgpack' });
  await expect(convert(msgpack, newFolder(), { links: 'follow' })).rejects.toThrow('it has no links');
  const mds = newFolder();
  await convert(msgpack, mds, { format: 'mds' });
  rmSync(path.join(mds, 'dataset.json'));
  rmSync(path.join(mds, 'pack.json'));
  await expect(convert(mds, newFolder(), { links: 'follow' })).rejects.toThrow('Only tars have links to follow');
});

test('gzip is detected from the content, whatever the name of the file, alone and among other tars', async () => {
  const folder = emptyFolder();
  const plain = await tarOf(files);
  for (const name of ['a.tar', 'a.tgz', 'a.tar.gz', 'a.bin', 'a']) {
    const input = path.join(folder, name);
    writeFileSync(input, gzipSync(plain));
    const output = newFolder();
    expect(await convert(input, output), name).toMatchObject({ samples: 5, shards: 1 });
  }
  // A file that is not compressed, despite its name, is read as it is.
  writeFileSync(path.join(folder, 'b.tar.gz'), plain);
  expect(await convert(path.join(folder, 'b.tar.gz'), newFolder())).toMatchObject({ samples: 5 });
  const tars = path.join(folder, 'tars');
  mkdirSync(tars);
  writeFileSync(path.join(tars, '0.tar'), plain);
  writeFileSync(path.join(tars, '1.tar'), gzipSync(plain));
  const output = newFolder();
  expect(await convert(tars, output, { workers: 1 })).toMatchObject({ samples: 10, shards: 2 });
  const fieldsOf = (sample: { readonly key: string; readonly fields: object }) => [sample.key, sample.fields];
  const samples = (await samplesOf(output)).map(fieldsOf);
  expect(samples.slice(5)).toEqual(samples.slice(0, 5));
});

test('two frames of the zstd tool are read from a file, alone and among other tars', async () => {
  const plain = newFolder();
  await convert(Readable.from([await tarOf(files)]), plain);
  const fieldsOf = async (output: string) =>
    (await samplesOf(output)).map(({ key, cls, fields }) => [key, cls, fields]);
  const output = newFolder();
  expect(await convert(ZSTD, output)).toMatchObject({ samples: 5, shards: 1, skippedEntries: 2 });
  expect(await fieldsOf(output)).toEqual(await fieldsOf(plain));
  const tars = emptyFolder();
  copyFileSync(ZSTD, path.join(tars, '0.tar'));
  const all = newFolder();
  expect(await convert(tars, all, { workers: 1 })).toMatchObject({ samples: 5, shards: 1 });
  expect(await fieldsOf(all)).toEqual(await fieldsOf(plain));
});

test('zstd in a stream is rejected, and the error shows the pipe that decompresses it', async () => {
  await expect(convert(createReadStream(ZSTD), newFolder())).rejects.toThrow(
    'The stream is compressed with zstd, which is read from files only: give the file, or decompress it in a pipe',
  );
});

test('damaged or truncated zstd is rejected, without a dataset', async () => {
  const whole = readFileSync(ZSTD);
  const damaged = Buffer.from(whole);
  damaged.fill(0xff, 60, 90);
  for (const [name, bytes] of [
    ['cut', whole.subarray(0, whole.length - 40)],
    ['damaged', damaged],
  ] as const) {
    const file = path.join(emptyFolder(), `${name}.tar.zst`);
    writeFileSync(file, bytes);
    const output = newFolder();
    await expect(convert(file, output), name).rejects.toThrow(`${name}.tar.zst: this cannot be read as a tar`);
    expect(existsSync(path.join(output, 'dataset.json'))).toBe(false);
  }
});

test('a compressed tar cannot be used for training, and the error for an unsupported compression shows the command', async () => {
  await expect(openDataset(ZSTD)).rejects.toThrow(
    'it is compressed with zstd, so its samples cannot be read individually. Convert it with "shardtool convert"',
  );
  const file = path.join(emptyFolder(), 'a.tar.lz4');
  writeFileSync(file, Buffer.from('04224d1864400001', 'hex'));
  const sentence =
    'it is compressed with lz4, which shardtool does not read. Decompress it with "lz4 -d", or convert it in a pipe';
  await expect(convert(file, newFolder())).rejects.toThrow(sentence);
  await expect(convert(createReadStream(file), newFolder())).rejects.toThrow(sentence);
});

/** The compression commands, if they are installed, with the extension of their files. */
const COMMANDS = [
  ['xz', 'xz'],
  ['bzip2', 'bz2'],
].filter(([command]) => spawnSync(command!, ['--version']).error === undefined) as [string, string][];

test.skipIf(COMMANDS.length === 0)(
  'a tar compressed with xz or bzip2 gives the shards of the plain tar, from a file and from a stream',
  async () => {
    const plain = await tarOf(files);
    const expected = newFolder();
    await convert(Readable.from([plain]), expected);
    for (const [command, extension] of COMMANDS) {
      const file = path.join(emptyFolder(), `a.tar.${extension}`);
      writeFileSync(file, spawnSync(command, ['-c'], { input: plain }).stdout);
      for (const source of [file, createReadStream(file, { highWaterMark: 100 })]) {
        const output = newFolder();
        await convert(source, output);
        // pack.json contains the source.
        for (const folder of [output, expected]) rmSync(path.join(folder, 'pack.json'), { force: true });
        expect(digestsOf(output), command).toEqual(digestsOf(expected));
      }
      await expect(openDataset(file)).rejects.toThrow(
        `it is compressed with ${command}, so its samples cannot be read`,
      );
    }
  },
);

test.skipIf(COMMANDS.length === 0)('damaged or truncated xz and bzip2 are rejected, without a dataset', async () => {
  const plain = await tarOf(files);
  for (const [command, extension] of COMMANDS) {
    const whole = spawnSync(command, ['-c'], { input: plain }).stdout;
    const damaged = Buffer.from(whole).fill(0xff, 60, 90);
    for (const bytes of [whole.subarray(0, whole.length - 20), damaged]) {
      const file = path.join(emptyFolder(), `a.tar.${extension}`);
      writeFileSync(file, bytes);
      const output = newFolder();
      await expect(convert(file, output), command).rejects.toThrow(`a.tar.${extension}: this cannot be read as a tar`);
      await expect(convert(createReadStream(file), output)).rejects.toThrow('this cannot be read as a tar');
      expect(existsSync(path.join(output, 'dataset.json'))).toBe(false);
    }
  }
});

test('without the decompression command, a file is rejected with what to install', async () => {
  const file = path.join(emptyFolder(), 'a.tar.xz');
  writeFileSync(file, Buffer.from('fd377a585a000001000000', 'hex'));
  const { PATH } = process.env;
  process.env.PATH = emptyFolder();
  try {
    await expect(convert(file, newFolder())).rejects.toThrow(
      'a.tar.xz: it is compressed with xz, and the command xz, which decompresses it, is not installed: install it (Debian: apt install xz-utils)',
    );
  } finally {
    process.env.PATH = PATH;
  }
});
