import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { type PackOptions, pack } from '@shardtool/writer';
import { beforeAll, expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { digestsOf, jpeg, newFolder, PNG, tree } from './pack-workbench.js';
import { buildSlowfs, mountSlow, type SlowFolder } from './slowfs/slow-folder.mjs';

/** Cases that occur in a source: class folders, files next to images, wrong names, damage, copies, links. */
const messy: Record<string, string | Uint8Array> = {};
for (let i = 0; i < 150; i++) messy[`class${i % 7}/${i}.jpg`] = jpeg(i);
for (let i = 0; i < 150; i += 5) messy[`class${i % 7}/${i}.txt`] = `caption ${i}`;
for (let i = 0; i < 150; i += 9) messy[`class${i % 7}/${i}.seg.png`] = PNG;
messy['class1/wrong-name.jpg'] = PNG;
messy['class2/damaged.jpg'] = 'no image at all';
messy['class3/empty.jpg'] = '';
messy['class4/copy.jpg'] = jpeg(3);
messy['class5/large.jpg'] = Buffer.concat([jpeg('large'), Buffer.alloc(3 << 20)]);
messy['class6/deep/er/one.jpg'] = jpeg('deep');
messy['.hidden/one.jpg'] = jpeg('hidden');

let source: string;

beforeAll(() => {
  source = tree(messy);
  const other = tree({ 'linked/a.jpg': jpeg('linked') });
  symlinkSync(path.join(other, 'linked'), path.join(source, 'class0/elsewhere'));
  symlinkSync(path.join(source, 'class1/1.jpg'), path.join(source, 'class0/link.jpg'));
  symlinkSync(path.join(source, 'class2'), path.join(source, 'again'));
  mkdirSync(path.join(source, 'nothing'));
});

const options: PackOptions = { maxShardSamples: 50, onBad: 'quarantine', maxBad: 0.1, fields: ['seg.png'] };

test.each<[string, PackOptions]>([
  ['a tar', {}],
  ['LMDB', { format: 'lmdb' }],
  ['one shard', { maxShardSamples: 10_000, workers: 2 }],
  ['images that are encoded again', { resize: 8, imageFormat: 'png' }],
  ['duplicates skipped', { dedupe: true }],
  ['patterns', { include: ['class1/**', 'class6/**'], exclude: ['**/1*.jpg'] }],
])('%s: many files in flight give the same bytes and the same report as one at a time', async (_, more) => {
  const [one, many] = [newFolder(), newFolder()];
  const wanted = await pack(source, one, { ...options, ...more, inFlight: 1 });
  const report = await pack(source, many, { ...options, ...more, inFlight: 40 });
  expect(report).toEqual(wanted);
  expect(digestsOf(many)).toEqual(digestsOf(one));
});

test('errors, progress and an abort are passed on between the caller and the packing process', async () => {
  const stopping = { ...options, onBad: 'raise' as const, inFlight: 8 };
  await expect(pack(source, newFolder(), stopping)).rejects.toMatchObject({
    name: 'BadFileError',
    message: expect.stringContaining('onBad: "quarantine"'),
  });
  await expect(pack(path.join(source, 'gone'), newFolder(), stopping)).rejects.toMatchObject({ name: 'SourceError' });
  const stages = new Set<string>();
  await pack(source, newFolder(), { ...options, inFlight: 8, onProgress: ({ stage }) => stages.add(stage) });
  expect(stages).toContain('commit');
  const stop = new AbortController();
  const stopped = pack(source, newFolder(), { ...options, inFlight: 8, signal: stop.signal });
  stop.abort(new Error('enough'));
  await expect(stopped).rejects.toThrow('enough');
});

test.each([1, 8])(
  'with %i in flight a pipe among the images, and a link to one, are bad files and do not block',
  async (inFlight) => {
    const folder = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(2) });
    execFileSync('mkfifo', [path.join(folder, 'a/pipe.jpg'), path.join(folder, 'a/other.pipe')]);
    symlinkSync('pipe.jpg', path.join(folder, 'a/link.jpg'));
    for (const include of [undefined, ['**']]) {
      const output = newFolder();
      const lenient: PackOptions = { inFlight, onBad: 'quarantine', maxBad: 1, ...(include && { include }) };
      expect(await pack(folder, output, lenient)).toMatchObject({ samples: 2, quarantined: 2 });
      const bad = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8');
      expect(bad).toContain(`${path.join(folder, 'a/pipe.jpg')} is a pipe or a device, not a file.`);
      expect(bad).toContain(`${path.join(folder, 'a/link.jpg')} is a pipe or a device, not a file.`);
      expect(readFileSync(path.join(output, 'skipped.jsonl'), 'utf8')).toContain('a/other.pipe');
    }
  },
);

test('if the system allows few open files, fewer are in flight, and no file is skipped', () => {
  const output = newFolder();
  const given = JSON.stringify({ ...options, inFlight: 200, workers: 2 });
  const command = `ulimit -n 80; exec "${process.execPath}" test/pack-child.mjs "$0" "$1" "$2"`;
  const { stdout } = spawnSync('sh', ['-c', command, source, output, given], { encoding: 'utf8' });
  expect(JSON.parse(stdout)).toMatchObject({ isCommitted: true, quarantined: 2 });
});

test('a file system with latency gives the same bytes as a disk, and one that stops responding ends the pack', async ({
  skip,
}) => {
  const binary = buildSlowfs(emptyFolder());
  const slow = binary === null ? null : await mountSlow(binary, source, 300, 300);
  if (slow === null) return skip();
  try {
    const [here, there] = [newFolder(), newFolder()];
    // A link that leads out of the mount has another path there.
    const without = { ...options, exclude: ['class0/elsewhere/**', 'class0/link.jpg', 'again/**'] };
    await pack(source, here, { ...without, inFlight: 1 });
    await pack(slow.path, there, without);
    expect(shardsOf(there)).toEqual(shardsOf(here));
    await expectEndWhenStopped(slow);
  } finally {
    await slow.unmount();
  }
});

/** A record next to the shards contains the path of each file. */
function shardsOf(folder: string): Record<string, string> {
  return Object.fromEntries(Object.entries(digestsOf(folder)).filter(([file]) => /\.(tar|parquet)$/.test(file)));
}

/** The process has ended although the hanging call has not. */
async function expectEndWhenStopped(slow: SlowFolder): Promise<void> {
  slow.stop();
  const given = JSON.stringify({ ...options, ioTimeout: 1 });
  const { stdout, status } = spawnSync(process.execPath, ['test/pack-child.mjs', slow.path, newFolder(), given], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  expect(stdout).toMatch(/^SourceTimeoutError: .* has not answered for 1 s \(ioTimeout\)/);
  expect(stdout).toContain(slow.path);
  expect(status).toBe(1);
}

test('file systems that may hang are detected from the list of mounts, without accessing them', async () => {
  const { mayHang } = await import('#writer/source/folder/mount');
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).toContain(' - proc ');
  expect(mayHang('/proc/self')).toBe(true);
  const link = path.join(emptyFolder(), 'link');
  symlinkSync('/proc', link);
  expect(mayHang(path.join(link, 'self'))).toBe(true);
});
