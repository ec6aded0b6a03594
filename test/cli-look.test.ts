import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { bash } from './cli-process.js';
import { packedPhotos } from './datasets.js';
import { JPEG, jpeg, newFolder, tree } from './pack-workbench.js';

const shards = {
  tar: await packedPhotos(),
  msgpack: await packedPhotos({ format: 'msgpack' }),
  lmdb: await packedPhotos({ format: 'lmdb' }),
};
const formats = ['tar', 'msgpack', 'lmdb'] as const;

test('ls lists the shards of a dataset and its totals', async () => {
  const { code, stdout } = await shardtool('ls', shards.lmdb);
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(7);
  expect(lines[0]).toMatch(/^000000\.lmdb +10 samples +\d+ kB$/);
  expect(lines[6]).toMatch(/^6 lmdb shards, 60 samples, \d\.\d MB, 6 classes, fields cls, jpg$/);
});

test('ls --json prints one object with shards and classes', async () => {
  const { stdout } = await shardtool('ls', shards.tar, '--json');
  const manifest = await readManifest(shards.tar);
  expect(JSON.parse(stdout)).toEqual({
    format: 'tar',
    identity: manifest.identity,
    samples: 60,
    bytes: manifest.bytes,
    fields: ['cls', 'jpg'],
    classes: ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'].map((name) => ({ name, samples: 10 })),
    skippedEntries: 0,
    splits: [],
    otherLayouts: [],
    shards: manifest.shards.map(({ file, bytes, samples }) => ({ file, bytes, samples })),
  });
});

test('ls --samples prints one line per sample: key, class, size, fields with their bytes', async () => {
  const { stdout } = await shardtool('ls', shards.tar, '--samples');
  const lines = stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(60);
  expect(lines.find((line) => line.startsWith('cat/cat_001'))).toBe('cat/cat_001\tcat\t640x480\tcls:1 jpg:75382');
});

test('ls --samples --where lists the matching samples, also by the columns of inspect', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(2), 'b/2.jpg': jpeg(2), 'b/3.jpg': jpeg(3) });
  const output = newFolder();
  await shardtool('pack', source, output, '--no-shuffle', '--max-shard-samples', '2');
  const keysOf = async (...args: string[]) => {
    const { stdout, stderr } = await shardtool('ls', output, '--samples', ...args);
    return stderr === '' ? stdout.split('\n').flatMap((line) => line.split('\t')[0] || []) : stderr;
  };
  expect(await keysOf('--where', 'class = "b"')).toEqual(['b/2', 'b/3']);
  expect(await keysOf('--where', 'width > 4096')).toEqual([]);
  expect(await keysOf('--where', 'class = "none"')).toContain('there is no class "none"');
  expect(await keysOf('--where', 'width >')).toContain('--where, position 8 of "width >": ');
  expect(await keysOf('--columns', 'inspect.duplicate')).toContain('run "shardtool inspect"');
  await shardtool('inspect', output);
  expect(await keysOf('--where', 'inspect.duplicate != null')).toEqual(['a/2', 'b/2']);
  const { stdout } = await shardtool(
    ...[
      'ls',
      output,
      '--samples',
      '--where',
      'inspect.duplicate != null and inspect.duplicate != key',
      '--columns',
      'inspect.duplicate',
    ],
  );
  expect(stdout).toMatch(/^b\/2\t.*\tinspect\.duplicate=a\/2\n$/);
  await shardtool(
    'overlay',
    'add',
    output,
    'once',
    '--exclude-where',
    'inspect.duplicate != null and inspect.duplicate != key',
  );
  expect(await keysOf('--overlay', 'once', '--where', 'inspect.duplicate != null')).toEqual(['a/2']);
  expect((await shardtool('ls', output, '--where', 'width > 1')).stderr).toContain('--where goes with --samples');
});

test('ls --samples --json prints one object per line, including label columns', async () => {
  const source = tree({
    'a/1.jpg': jpeg(1),
    'a/2.jpg': jpeg(2),
    'labels.csv': 'path,class,caption\na/1.jpg,cat,"one, two"\na/2.jpg,,\n',
  });
  const output = newFolder();
  expect(await shardtool('pack', source, output, '--labels', `${source}/labels.csv`, '--no-shuffle')).toMatchObject({
    code: 0,
  });
  const { stdout } = await shardtool('ls', output, '--samples', '--json');
  const bytes = jpeg(1).length;
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    {
      ...{
        shard: '000000.tar',
        key: 'a/1',
        source: 'a/1.jpg',
        label: 0,
        class: 'cat',
        width: 1,
        height: 1,
        orientation: 1,
      },
      ...{ fields: { cls: 1, jpg: bytes }, columns: { caption: 'one, two' } },
    },
    {
      ...{
        shard: '000000.tar',
        key: 'a/2',
        source: 'a/2.jpg',
        label: null,
        class: null,
        width: 1,
        height: 1,
        orientation: 1,
      },
      ...{ fields: { jpg: bytes }, columns: { caption: null } },
    },
  ]);
});

test('a listing ends silently when its reader closes the pipe', async () => {
  const many = tree(Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`a/${i}.jpg`, jpeg(i)])));
  const output = newFolder();
  await shardtool('pack', many, output);
  const { stdout, stderr } = await bash(
    `shardtool ls ${output} --samples --json | head -n 2 | wc -l; echo "\${PIPESTATUS[@]}"
     shardtool ls ${output} --samples | true; echo "\${PIPESTATUS[@]}"`,
  );
  expect([stdout.replaceAll(' ', ''), stderr]).toEqual(['2\n000\n00\n', '']);
});

test.each(formats)('cat prints the image of a sample, or the given field, from %s', async (format) => {
  const image = await shardtool('cat', shards[format], 'cat/cat_001');
  expect(image).toMatchObject({ code: 0, stderr: '' });
  expect(image.bytes.equals(readFileSync('examples/photos/cat/cat_001.jpg'))).toBe(true);
  expect(await shardtool('cat', shards[format], 'rocket/rocket_002', 'cls')).toMatchObject({ code: 0, stdout: '5' });
});

test('cat accepts a key of digits only, and prints a field of 3 MB completely', async () => {
  const text = 'x'.repeat(3_000_000);
  const output = newFolder();
  await shardtool('pack', tree({ '007.jpg': jpeg(7), '007.txt': text }), output);
  expect((await shardtool('cat', output, '007', 'txt')).stdout).toBe(text);
  expect((await bash(`shardtool cat ${output} 007 txt | head -c 5; echo " \${PIPESTATUS[0]}"`)).stdout).toBe(
    'xxxxx 0\n',
  );
});

test('a key, a field and a folder that begin with a dash can be given after "--"', async () => {
  const root = tree({ 'in/-x/1.jpg': JPEG, 'in/-x/1.json': '{}' });
  const output = path.join(root, '-out');
  expect(await shardtool('pack', '--quiet', '--', path.join(root, 'in'), output)).toMatchObject({ code: 0 });
  expect((await shardtool('cat', output, '--', '-x/1')).bytes).toEqual(JPEG);
  expect(await shardtool('cat', '--', output, '-x/1', 'json')).toMatchObject({ code: 0, stdout: '{}' });
  expect(await shardtool('cat', output, '-x/1')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Unknown option -x/1. Put "--" before a key or file name that begins with "-".'),
  });
  expect(await shardtool('cat', output, '--', '-x/1', 'json', '-y')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Unexpected argument: -y.'),
  });
});

test('cat of a sample without an image requires a field', async () => {
  const { code, stderr } = await shardtool('cat', 'test/fixtures/tar/python-pax.tar', 'dogs.v2/dog');
  expect(code).toBe(2);
  expect(stderr).toBe('shardtool: Sample "dogs.v2/dog" has no image; choose one of its fields: json, txt.\n');
});

test('@shardtool/reader/open-files opens a dataset without loading the loader', async () => {
  const program = `
    import { openFiles } from '@shardtool/reader/open-files';
    const dataset = await openFiles(process.argv[1]);
    console.log(dataset.size, (await dataset.get(0)).key, 'loader' in dataset);
    await dataset.close();
  `;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', program, shards.tar],
    { encoding: 'utf8' },
  );
  expect(stdout).toMatch(/^60 \w+\/\w+ false\n$/);
  expect([status, stderr]).toEqual([0, '']);
});
