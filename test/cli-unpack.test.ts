import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { bash, bin } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { faultyServer } from './faulty-server.js';
import { filesIn, jpeg, newFolder, PNG, tree } from './pack-workbench.js';
import { archive, entry, pax, record } from './tar-craft.js';

const photos = filesIn('examples/photos').filter((file) => file.endsWith('.jpg'));

test.each(['tar', 'msgpack', 'lmdb'] as const)('unpack restores every packed file, from %s', async (format) => {
  const shards = await packedPhotos({ format });
  const folder = newFolder();
  expect(await shardtool('unpack', shards, folder)).toMatchObject({
    code: 0,
    stdout: `Unpacked 120 files of 60 samples into ${folder}.\n`,
  });
  expect(filesIn(folder)).toEqual(photos.flatMap((file) => [file.replace('.jpg', '.cls'), file]).sort());
  for (const file of photos) {
    expect(readFileSync(path.join(folder, file)).equals(readFileSync(path.join('examples/photos', file)))).toBe(true);
  }
  const cls = photos.map((file) => readFileSync(path.join(folder, file.replace('.jpg', '.cls')), 'latin1'));
  expect(cls.join('')).toBe([0, 1, 2, 3, 4, 5].map((number) => String(number).repeat(10)).join(''));
});

test('a dataset is written to standard output as one tar, which GNU tar and convert can read', async () => {
  const shards = await packedPhotos({ format: 'msgpack' });
  const [folder, again] = [emptyFolder(), newFolder()];
  const piped = await bash(
    `shardtool unpack ${shards} - | tee >(tar x -C ${folder}) | shardtool convert - ${again} --quiet && sleep 0.2`,
  );
  expect(piped).toMatchObject({ code: 0, stderr: '' });
  for (const file of photos) {
    expect(readFileSync(path.join(folder, file)).equals(readFileSync(path.join('examples/photos', file)))).toBe(true);
  }
  expect((await shardtool('ls', again)).stdout).toContain('60 samples');
});

test('unpacked files pack again to the same shards', async () => {
  const shards = await packedPhotos();
  const [folder, again] = [newFolder(), newFolder()];
  await shardtool('unpack', shards, folder, '--fields', 'jpg', '--quiet');
  expect(filesIn(folder)).toEqual(photos);
  await shardtool('pack', folder, again, '--max-shard-samples', '10');
  // The record contains the source of a dataset, which is another folder here.
  // It also did not contain a README.md that was skipped.
  for (const file of filesIn(shards).filter((name) => name !== 'pack.json' && name !== 'skipped.jsonl')) {
    expect(readFileSync(path.join(again, file)).equals(readFileSync(path.join(shards, file)))).toBe(true);
  }
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s ends unpack with a message, and every file that it leaves is whole', async (signal, exitCode) => {
  const shards = await packedPhotos({ maxShardSamples: 10 });
  const folder = path.join(newFolder(), 'unpacked');
  const server = await faultyServer(shards);
  // The last shard never comes, so that the command is at work when the signal arrives.
  let asked = () => {};
  const waits = new Promise<void>((done) => {
    asked = done;
  });
  server.fault = ({ url }) => {
    if (!url.endsWith('000005.tar')) return undefined;
    asked();
    return 'stall';
  };
  const child = spawn(process.execPath, [bin, 'unpack', server.url, folder]);
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  try {
    await waits;
    child.kill(signal);
    expect(await once(child, 'close')).toEqual([exitCode, null]);
  } finally {
    child.kill('SIGKILL');
    await server.stop();
  }
  expect(stderr).toBe(
    `shardtool: stopped by ${signal}. ${folder} has only some of the files: unpack again, into an empty folder.\n`,
  );
  for (const file of existsSync(folder) ? filesIn(folder).filter((name) => name.endsWith('.jpg')) : []) {
    expect(readFileSync(path.join(folder, file)).equals(readFileSync(path.join('examples/photos', file)))).toBe(true);
  }
});

test('an existing file is kept, and the error names it', async () => {
  const shards = await packedPhotos();
  const folder = tree({ 'cat/cat_003.jpg': 'mine' });
  const { code, stderr } = await shardtool('unpack', shards, folder);
  expect(code).toBe(1);
  expect(stderr).toContain(
    'cat/cat_003.jpg cannot be written (something is there already); unpack into an empty folder.',
  );
  expect(readFileSync(path.join(folder, 'cat/cat_003.jpg'), 'latin1')).toBe('mine');
});

test('unpack does not follow a link to outside the folder', async () => {
  const shards = await packedPhotos();
  const [folder, outside] = [emptyFolder(), emptyFolder()];
  symlinkSync(outside, path.join(folder, 'cat'));
  const linked = await shardtool('unpack', shards, folder);
  expect(linked.code).toBe(1);
  expect(linked.stderr).toContain('cat is a file or a link');
  expect(readdirSync(outside)).toEqual([]);

  const other = emptyFolder();
  mkdirSync(path.join(other, 'cat'));
  for (const file of photos) {
    if (file.startsWith('cat')) symlinkSync(path.join(outside, 'victim'), path.join(other, file));
  }
  expect((await shardtool('unpack', shards, other)).stderr).toContain('something is there already');
  expect(existsSync(path.join(outside, 'victim'))).toBe(false);
});

test.each([
  ['../escaped.jpg', 'leads out of its folder', entry({ name: '../escaped.jpg' }, 'x')],
  ['an absolute path', 'is absolute', entry({ name: '/tmp/escaped.jpg' }, 'x')],
  ['.. in a pax record', 'leads out', Buffer.concat([pax(record('path', '../escaped.jpg')), entry({}, 'x')])],
])('%s in a tar is rejected with its offset, and nothing is written outside the folder', async (_, reason, bad) => {
  const folder = emptyFolder();
  const tar = path.join(folder, 'crafted.tar');
  const good = entry({ name: 'good.jpg' }, jpeg(1));
  writeFileSync(tar, archive(good, bad));
  const { code, stderr } = await shardtool('unpack', tar, path.join(folder, 'deep/output'));
  expect(code).toBe(1);
  expect(stderr).toContain(reason);
  expect(stderr).toContain(`crafted.tar: `);
  expect(stderr).toMatch(new RegExp(`byte (${good.length}|${good.length + 1024})\\b`));
  expect(filesIn(folder)).toEqual(['crafted.tar']);
});

test('a symbolic link in a tar is skipped, and nothing is written outside the folder', async () => {
  const folder = emptyFolder();
  const tar = path.join(folder, 'linked.tar');
  writeFileSync(
    tar,
    archive(entry({ name: 'good.jpg' }, jpeg(1)), entry({ name: 'a.jpg', type: '2', linkName: '/etc/passwd' })),
  );
  expect((await shardtool('unpack', tar, path.join(folder, 'output'))).code).toBe(0);
  expect(filesIn(folder)).toEqual(['linked.tar', 'output/good.jpg']);
});

test('a key or field that leads out of the folder is rejected, in every layout', async () => {
  const shards = await packedPhotos({ format: 'msgpack', include: ['cat/cat_000.jpg'] });
  const evil = [
    ['../escaped', 'jpg'],
    ['/tmp/escaped', 'jpg'],
    ['a', '/../../../escaped'],
  ] as const;
  for (const [key, field] of evil) {
    writeFileSync(path.join(shards, '000000.msgpack'), msgpackSample(key, field));
    rmSync(path.join(shards, '000000.parquet'), { force: true });
    const indexed = await shardtool('index', shards);
    const folder = path.join(emptyFolder(), 'deep/output');
    const unpacked = await shardtool('unpack', shards, folder);
    expect([indexed.code, unpacked.code]).not.toEqual([0, 0]);
    expect(`${indexed.stderr}${unpacked.stderr}`).toMatch(/leads out|is absolute/);
    expect(filesIn(path.dirname(path.dirname(folder)))).toEqual([]);
  }
});

/** `{"__key__": key, [field]: <78>}`, by the msgpack specification: fixmap, fixstr, bin 8. */
function msgpackSample(key: string, field: string): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([0xa0 + value.length]), Buffer.from(value)]);
  return Buffer.concat([Buffer.from([0x82]), text('__key__'), text(key), text(field), Buffer.from([0xc4, 1, 0x78])]);
}

test('a file gets its original name back, and the shards may be in the packed folder', async () => {
  const source = tree({ 'cat/IMG 0.JPG': jpeg(1), 'cat/a.b.jpg': jpeg(2), 'cat/a.b.JSON': '{}' });
  const [shards, folder] = [path.join(source, 'shards'), newFolder()];
  for (const said of ['Packed 3 files', 'already has all of']) {
    expect((await shardtool('pack', source, shards)).stdout).toContain(said);
  }
  await shardtool('unpack', shards, folder);
  expect(filesIn(folder)).toEqual(['cat/IMG 0.JPG', 'cat/IMG 0.cls', 'cat/a.b.cls', 'cat/a.b.jpg', 'cat/a.b.json']);
});

test('an image with the wrong extension gets its original name back, and one that was encoded again gets the extension of its format', async () => {
  const source = tree({ 'cat/1.png': jpeg(1), 'cat/1.json': '{}', 'cat/2.jpg': PNG });
  const files = ['cat/1.cls', 'cat/1.json', 'cat/1.png', 'cat/2.cls', 'cat/2.jpg'];
  for (const format of ['tar', 'lmdb']) {
    const [shards, folder] = [newFolder(), newFolder()];
    await shardtool('pack', source, shards, '--format', format);
    await shardtool('unpack', shards, folder);
    expect(filesIn(folder)).toEqual(files);
    for (const file of files.filter((name) => !name.endsWith('.cls')))
      expect(readFileSync(path.join(folder, file)).equals(readFileSync(path.join(source, file)))).toBe(true);
  }
  const [shards, folder] = [newFolder(), newFolder()];
  await shardtool('pack', source, shards, '--image-format', 'webp');
  await shardtool('unpack', shards, folder);
  expect(filesIn(folder)).toEqual(['cat/1.cls', 'cat/1.json', 'cat/1.webp', 'cat/2.cls', 'cat/2.webp']);
});

test('the error for a key with too many folders is one sentence, and no file is created', async () => {
  const deep = `${'a/'.repeat(10_000)}x.txt`;
  const shard = path.join(emptyFolder(), 'deep.tar');
  writeFileSync(shard, archive(pax(record('path', deep)), entry({ name: 'short.txt' }, 'x')));
  const folder = newFolder();
  const { code, stderr } = await shardtool('unpack', shard, folder);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^shardtool: deep\.tar: a sample would be the file "(a\/){40}\.\.\.", whose name of 20005 bytes is too long/,
  );
  expect(stderr.trimEnd()).not.toContain('\n');
  expect(existsSync(folder)).toBe(false);
  const tar = await shardtool('unpack', shard, '-');
  expect(tar).toMatchObject({ code: 0 });
});
