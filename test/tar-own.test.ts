import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tar } from '@shardtool/format';
import { extract } from 'tar-stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pythonWith, runPython } from './python.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-tar-own-'));
const shard = join(folder, '000000.tar');
afterAll(() => rmSync(folder, { recursive: true }));

/** Names that fit a header, need its prefix, or need a pax record by length or by characters; sizes around a block. */
const keys = [
  'cats/cat_1',
  'v1.2/dog',
  `${'folder/'.repeat(20)}deep`,
  'n'.repeat(96),
  'n'.repeat(97),
  'long'.repeat(60),
  `${'folder/'.repeat(60)}deeper`,
  'köln/Straße_日本_😀',
  `é${'n'.repeat(245)}`,
];
const sizes = [0, 1, 511, 512, 513, 100_000];
const files = new Map<string, Buffer>();

beforeAll(() => {
  const fd = openSync(shard, 'w');
  const writer = tar.createWriter(fd, shard);
  for (const [i, key] of keys.entries()) {
    const fields = [
      { name: 'cls', bytes: 1 },
      { name: 'jpg', bytes: sizes[i % sizes.length]! },
    ];
    for (const [j, place] of writer.begin(key, fields).entries()) {
      place.fill(i + j + 1);
      files.set(`${key}.${fields[j]!.name}`, Buffer.from(place));
    }
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
});

const gnuTar = /GNU tar/.test(spawnSync('tar', ['--version'], { encoding: 'utf8' }).stdout ?? '');
if (!gnuTar) console.log('GNU tar is not here: the tests that need it are skipped');

function run(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('tar', [...args, '--quoting-style=literal', '--show-stored-names'], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
  });
  expect([status, stderr]).toEqual([0, '']);
  return stdout;
}

test.runIf(gnuTar)('tar tf lists a packed shard without a warning', () => {
  expect(run('-tf', shard).trim().split('\n')).toEqual([...files.keys()]);
});

test.runIf(gnuTar)('tar xf extracts the same bytes', () => {
  run('-xf', shard, '-C', folder);
  for (const [name, payload] of files) expect(readFileSync(join(folder, name)).equals(payload), name).toBe(true);
});

test('tar-stream reads the same names and bytes', async () => {
  const found = new Map<string, Buffer>();
  for await (const entry of createReadStream(shard).pipe(extract())) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    expect(entry.header).toMatchObject({ type: 'file', mode: 0o644, uid: 0, gid: 0, mtime: new Date(0) });
    found.set(entry.header.name, Buffer.concat(chunks));
  }
  expect([...found.keys()]).toEqual([...files.keys()]);
  for (const [name, payload] of files) expect(found.get(name)!.equals(payload), name).toBe(true);
});

function digests(): [string, string][] {
  return [...files].map(([name, payload]) => [name, createHash('sha256').update(payload).digest('hex')]);
}

test.skipIf(pythonWith() === null)("Python's tarfile reads the same names and bytes", () => {
  const program = `
import hashlib, json, sys, tarfile
with tarfile.open(json.load(sys.stdin), errorlevel=2) as tar:
    print(json.dumps([[m.name, hashlib.sha256(tar.extractfile(m).read()).hexdigest()] for m in tar if m.isreg()]))`;
  expect(runPython(program, shard)).toEqual(digests());
});

test.skipIf(pythonWith('webdataset') === null)('webdataset reads the same samples', () => {
  const program = `
import hashlib, json, sys, webdataset
samples = webdataset.WebDataset(json.load(sys.stdin), shardshuffle=False)
digest = lambda data: hashlib.sha256(data).hexdigest()
print(json.dumps([[s["__key__"] + "." + name, digest(s[name])] for s in samples for name in s if name[0] != "_"]))`;
  expect(runPython(program, shard)).toEqual(digests());
});
