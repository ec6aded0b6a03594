import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { FileError, ManifestError, ShardtoolError, UnfinishedPackError, VersionError } from '@shardtool/base';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createManifest,
  identityOf,
  type Manifest,
  type ManifestShard,
  parseManifest,
  readManifest,
  writeManifest,
} from './manifest.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifest-'));
});
afterAll(() => rm(folder, { recursive: true }));

const shards: readonly ManifestShard[] = [
  { file: '000000.tar', bytes: 51_200, samples: 20, crc32: '0badcafe', maxSampleBytes: 4096 },
  { file: '000001.tar', bytes: 10_240, samples: 4, crc32: '00000001', maxSampleBytes: 5120 },
];

const manifest = createManifest({
  format: 'tar',
  classes: [
    { name: 'cat', samples: 14 },
    { name: 'Prüfung "x"', samples: 10 },
  ],
  fields: [
    { name: 'cls', samples: 24 },
    { name: 'jpg', samples: 24 },
  ],
  columns: [{ name: 'split', type: 'string' }],
  shards,
});

async function folderWith(text: string): Promise<string> {
  const own = await mkdtemp(join(folder, 'd-'));
  await writeFile(join(own, 'dataset.json'), text);
  return own;
}

/** The manifest with some properties replaced. */
const altered = (change: object) => JSON.stringify({ ...manifest, ...change });

test('a manifest is read back unchanged, and no temporary file is left in the folder', async () => {
  const own = await mkdtemp(join(folder, 'd-'));
  await writeManifest(own, manifest);
  expect(await readManifest(own)).toEqual(manifest);
  expect(await readdir(own)).toEqual(['dataset.json']);
});

test('a manifest has one line per class and shard, and the same bytes every time', async () => {
  const own = await mkdtemp(join(folder, 'd-'));
  await writeManifest(own, manifest);
  expect(await readFile(join(own, 'dataset.json'), 'utf8')).toBe(`{
  "version": 1,
  "format": "tar",
  "identity": "${manifest.identity}",
  "samples": 24,
  "bytes": 61440,
  "classes": [
    {"name":"cat","samples":14},
    {"name":"Prüfung \\"x\\"","samples":10}
  ],
  "fields": [
    {"name":"cls","samples":24},
    {"name":"jpg","samples":24}
  ],
  "columns": [
    {"name":"split","type":"string"}
  ],
  "shards": [
    {"file":"000000.tar","bytes":51200,"samples":20,"crc32":"0badcafe","maxSampleBytes":4096},
    {"file":"000001.tar","bytes":10240,"samples":4,"crc32":"00000001","maxSampleBytes":5120}
  ],
  "crc32": "e77e02e2"
}
`);
});

test('the identity equals that of version 1, and changes with name, samples, content and order of the shards', () => {
  const identity = identityOf(shards);
  expect(identity).toBe('71d45f9d6ccc889d0c7da43869d82cc7255ddcd32527699c9a456e95ecea5bd2');
  const [first, second] = [shards[0]!, shards[1]!];
  for (const other of [
    [second, first],
    [first],
    [{ ...first, file: 'a.tar' }, second],
    [{ ...first, samples: 21 }, second],
    [first, { ...second, crc32: '00000002' }],
  ]) {
    expect(identityOf(other)).not.toBe(identity);
  }
  expect(identityOf([{ ...first, bytes: 1, maxSampleBytes: 1 }, second])).toBe(identity);
});

test('a folder without a manifest is reported as an unfinished pack', async () => {
  const own = await mkdtemp(join(folder, 'd-'));
  await expect(readManifest(own)).rejects.toThrow(UnfinishedPackError);
  await expect(readManifest(own)).rejects.toThrow(
    /has no dataset\.json: it is not a dataset, or its pack did not finish/,
  );
});

test.each([[['dataset_dict.json']], [['state.json', 'dataset_info.json', 'data-00000-of-00001.arrow']]])(
  'a folder of save_to_disk is recognised by %j, and the error shows how to write Parquet instead',
  async (names) => {
    const own = await mkdtemp(join(folder, 'd-'));
    for (const name of names) await writeFile(join(own, name), '{}');
    await expect(readManifest(own)).rejects.toThrow(/save_to_disk .*to_parquet/);
  },
);

test('a folder that does not exist, or whose manifest cannot be read, throws a file error', async () => {
  await expect(readManifest(join(folder, 'none'))).rejects.toThrow(FileError);
  const own = await mkdtemp(join(folder, 'd-'));
  await mkdir(join(own, 'dataset.json'));
  await expect(readManifest(own)).rejects.toThrow(FileError);
});

test('a manifest of a newer version throws an error that names both versions', async () => {
  const own = await folderWith('{"version": 3, "shards": "of another kind"}');
  await expect(readManifest(own)).rejects.toThrow(VersionError);
  await expect(readManifest(own)).rejects.toThrow(/version 3.*versions up to 1/);
});

test('the error for an invalid manifest names the invalid value', async () => {
  const parse = (text: string) => parseManifest(text, 'd/dataset.json');
  await expect(parse('{"version": 1,')).rejects.toThrow(ManifestError);
  await expect(parse('null')).rejects.toThrow(ManifestError);
  await expect(parse('{"version": "1"}')).rejects.toThrow(/d\/dataset\.json is damaged: version/);
  await expect(parse(altered({ format: 'zip' }))).rejects.toThrow('format');
  await expect(parse(altered({ samples: -1 }))).rejects.toThrow('samples');
  await expect(parse(altered({ classes: [{ name: 1, samples: 0 }] }))).rejects.toThrow('classes.0.name');
  await expect(parse(altered({ samples: 25 }))).rejects.toThrow('does not agree with its totals and identity');
  await expect(parse(altered({ shards: [...shards].reverse() }))).rejects.toThrow('does not agree');
});

test('a shard path outside the folder of the dataset is rejected', async () => {
  const paths = [
    '',
    '.',
    '..',
    '../x.tar',
    '/etc/x.tar',
    'a/../x.tar',
    'a/b/c.tar',
    'a//b',
    '..\\x.tar',
    'C:x.tar',
    '.x',
    'a/.b',
    'x\0.tar',
    'a/',
  ];
  for (const file of paths) {
    const wrong = createManifest({ ...manifest, shards: [{ ...shards[0]!, file }] });
    await expect(parseManifest(JSON.stringify(wrong), 'dataset.json')).rejects.toThrow(
      /shards\.0\.file must be the name/,
    );
  }
  for (const file of ['a..b.tar', 'train-000000.tar', '000000.lmdb/data.mdb', 'Fotos é.tar']) {
    const right = createManifest({ ...manifest, shards: [{ ...shards[0]!, file }] });
    expect(await parseManifest(JSON.stringify(right), 'dataset.json')).toEqual(right);
  }
});

test('a damaged manifest throws a ShardtoolError, or still has the same identity', async () => {
  const text = JSON.stringify(manifest);
  const changes = fc.array(fc.tuple(fc.nat({ max: text.length - 1 }), fc.string({ minLength: 1, maxLength: 1 })), {
    minLength: 1,
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(changes, fc.nat({ max: text.length }), async (edits, length) => {
      const letters = [...text];
      for (const [at, letter] of edits) letters[at] = letter;
      const damaged = letters.join('').slice(0, length > text.length / 2 ? text.length : length);
      let read: Manifest;
      try {
        read = await parseManifest(damaged, 'dataset.json');
      } catch (error) {
        expect(error).toBeInstanceOf(ShardtoolError);
        return;
      }
      expect(identityOf(read.shards)).toBe(manifest.identity);
    }),
  );
});

test('a manifest of 10,000 shards is read as it was written', async () => {
  const many = createManifest({
    ...manifest,
    shards: Array.from({ length: 10_000 }, (_, n) => ({ ...shards[0]!, file: `${String(n).padStart(6, '0')}.tar` })),
  });
  const own = await mkdtemp(join(folder, 'd-'));
  await writeManifest(own, many);
  expect(await readManifest(own)).toEqual(many);
});

test.each(['gzip', 'br', 'zstd'])(
  'a manifest that its server compresses is not called damaged: the error names %s',
  async (coding) => {
    // Any bytes that are not JSON: nothing decompresses them.
    const zipped = gzipSync(JSON.stringify(manifest));
    const server = createServer((_, answer) => {
      answer.writeHead(200, { 'content-encoding': coding, 'content-length': zipped.length }).end(zipped);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    try {
      const { port } = server.address() as AddressInfo;
      const read = readManifest(`http://127.0.0.1:${port}/shards`);
      await expect(read).rejects.toThrow(`dataset.json cannot be read: its server compresses it (${coding})`);
      await expect(read).rejects.not.toBeInstanceOf(ManifestError);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
);
