import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketServer, defaultBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';

let server: BucketServer;
/** Datasets on disk; each is in the bucket `b` under the same name. */
let top: string;

beforeAll(async () => {
  server = await defaultBucketServer();
  process.env.SHARDTOOL_SIDECARS = emptyFolder();
  top = emptyFolder();
  await makeDatasets();
  for (const file of filesIn(top)) server.put(`b/${file}`, fs.readFileSync(path.join(top, file)));
});
afterAll(() => server.stop());

const OF_SHARDTOOL = /\.(json|parquet|crops|inspect|jsonl)$/;

/** `packed`, the same without shardtool's files (`foreign`, `lmdb`), `damaged`, `images` and a file of keys. */
async function makeDatasets(): Promise<void> {
  const packed = path.join(top, 'packed');
  fs.cpSync(await packedPhotos({ index: ['crops'], maxShardSamples: 20 }), packed, { recursive: true });
  await done('inspect', packed, '--workers', '1');
  await done('split', packed, '--val', '0.5');
  const lines = (await done('ls', packed, '--samples', '--json')).trim().split('\n');
  const keys = lines.slice(0, 7).map((line) => JSON.parse(line).key);
  fs.writeFileSync(path.join(top, 'keys.txt'), `${keys.join('\n')}\n`);
  await done('overlay', 'add', packed, 'fewer', '--exclude-keys', path.join(top, 'keys.txt'));
  await done('convert', packed, path.join(top, 'lmdb'), '--format', 'lmdb', '--quiet');
  fs.cpSync(packed, path.join(top, 'damaged'), { recursive: true });
  fs.cpSync(packed, path.join(top, 'foreign'), { recursive: true });
  for (const name of ['foreign', 'lmdb']) {
    for (const file of filesIn(path.join(top, name))) {
      if (OF_SHARDTOOL.test(file)) fs.rmSync(path.join(top, name, file));
    }
  }
  for (const [name, at] of [
    ['000000.tar', 30_000],
    ['000001.parquet', 500],
    ['000002.crops', 100],
  ] as const) {
    const file = path.join(top, 'damaged', name);
    const bytes = fs.readFileSync(file);
    bytes[at]! ^= 1;
    fs.writeFileSync(file, bytes);
  }
  fs.cpSync('examples/photos/cat', path.join(top, 'images', 'cat'), { recursive: true });
}

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await shardtool(...args);
  expect({ args, code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}

function filesIn(folder: string): string[] {
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => fs.statSync(path.join(folder, file)).isFile())
    .sort();
}

/** The output and files of a command. `pack.json` contains a hash of the input paths. */
async function run(place: string, args: readonly string[]) {
  const output = path.join(emptyFolder(), 'output');
  const given = args.map((arg) => arg.replace('KEYS', path.join(top, 'keys.txt')));
  const writes = ['convert', 'unpack'].includes(given[0]!);
  const { code, stdout, stderr } = await shardtool(given[0]!, place, ...(writes ? [output] : []), ...given.slice(1));
  const shown = (text: string) =>
    text
      .replaceAll(place, 'PLACE')
      .replaceAll(output, 'OUTPUT')
      .replace(/^Took [\d.]+ m?s \(.*?\)/m, 'Took TIME (RATE)');
  const made = (code === 0 ? filesIn(output) : [])
    .filter((file) => file !== 'pack.json')
    .map((file) => [
      file,
      createHash('md5')
        .update(fs.readFileSync(path.join(output, file)))
        .digest('hex'),
    ]);
  return { args, code, stdout: shown(stdout), stderr: shown(stderr), made };
}

async function expectTheSame(name: string, commands: readonly string[]): Promise<void> {
  for (const command of commands) {
    const args = command.split(' ');
    expect(await run(`s3://b/${name}`, args)).toEqual(await run(path.join(top, name), args));
  }
}

const VIEWS = [
  '--exclude-keys KEYS',
  '--split train',
  '--split nothing',
  '--overlay fewer',
  '--overlay split --split val --exclude-keys KEYS',
  '--layout tar',
  '--image-feature x --label-feature y --key-feature z',
  '--max-sample-bytes 1KiB',
];

test('every option of ls, stats and unpack gives the same for a bucket as for a folder', async () => {
  for (const view of ['', ...VIEWS.map((view) => ` ${view}`)]) {
    await expectTheSame('packed', [`ls --samples --json${view}`, `stats --json${view}`, `unpack${view}`]);
  }
  await expectTheSame('packed', ['ls', 'ls --json', 'ls --samples', 'stats --limit 2', 'unpack --fields cls']);
});

test('every option of convert gives the same for a bucket as for a folder', async () => {
  const options = [
    ...VIEWS,
    '--format lmdb --lmdb-values image',
    '--format msgpack --json',
    '--format parquet --exclude-keys KEYS --name x',
    '--format tfrecord --overlay fewer',
    '--format mds --split val',
    '--index wids,dali,crops',
    '--workers 2 --quiet',
    '--where source>"cat"',
    '--where width>450&&inspect.blur>0',
    '--max-shard-samples 7',
    '--fields jpg',
    '--classes KEYS',
  ];
  await expectTheSame('packed', ['convert', ...options.map((option) => `convert ${option}`)]);
});

test('verify finds the same in a bucket as in a folder, including crop indexes', async () => {
  await expectTheSame('packed', ['verify', 'verify --check decode --json', 'verify --workers 2 --quiet']);
  await expectTheSame('damaged', ['verify', 'verify --check decode', 'verify --json --workers 2']);
  expect((await shardtool('verify', 's3://b/damaged')).stdout).toContain('000002.tar\t');
});

test('shards of other software give the same in a bucket as in a folder, also LMDB in separate folders', async () => {
  for (const name of ['foreign', 'lmdb', 'foreign/000001.tar']) {
    const commands = ['ls --samples', 'convert --exclude-keys KEYS', 'convert --where key>"cat"', 'unpack'];
    // The index of a scanned tar in a bucket is kept on this machine, so verify must be first.
    process.env.SHARDTOOL_SIDECARS = emptyFolder();
    await expectTheSame(name, ['verify', 'stats', ...commands]);
  }
  await expectTheSame('foreign/000001.tar', ['convert --fields jpg']);
});

test('paths of packed files select the same samples in a bucket as in a folder, and samples have these paths', async () => {
  const selected = async (place: string) => {
    await using dataset = await openDataset(place);
    await using loader = dataset.loader({ transform: 'raw', where: 'source > "cat" and source < "d"', workers: 1 });
    const keys: string[] = [];
    for await (const batch of loader) keys.push(...batch.keys);
    const sources: string[] = [];
    for await (const { source } of dataset.samples({ to: 25 })) sources.push(source);
    return { keys, sources };
  };
  const found = await selected('s3://b/packed');
  expect(found).toEqual(await selected(path.join(top, 'packed')));
  expect(found.keys).toHaveLength(20);
  expect(found.sources[0]).toMatch(/\.jpg$/);
});

test('verify does not need the permission to list a bucket', async () => {
  server.fault = ({ key, query }) =>
    query.has('list-type') || key.endsWith('.crops') ? { status: 403, code: 'AccessDenied' } : undefined;
  expect(await run('s3://b/packed', ['verify'])).toMatchObject({ code: 0, stderr: '' });
  server.fault = () => undefined;
});

test('overlays and splits are created, listed and removed in a bucket as in a folder', async () => {
  const [here, there] = [path.join(emptyFolder(), 'lying'), 's3://b/lying'];
  fs.cpSync(path.join(top, 'packed'), here, { recursive: true });
  for (const file of filesIn(here)) server.put(`b/lying/${file}`, fs.readFileSync(path.join(here, file)));
  const commands = [
    'overlay add PLACE clean --exclude-keys KEYS',
    'overlay add PLACE clean --exclude-keys KEYS',
    'overlay add PLACE animals --parent clean --rename cat=animal',
    'overlay ls PLACE',
    'overlay log PLACE animals',
    'overlay rm PLACE clean',
    'overlay rm PLACE animals',
    'overlay ls PLACE --json',
    'split PLACE --val 0.25 --name quarter',
    'verify PLACE',
  ];
  for (const command of commands) {
    const done = async (place: string) => {
      const args = command.replace('KEYS', path.join(top, 'keys.txt')).replace('PLACE', place).split(' ');
      const { code, stdout, stderr } = await shardtool(...args);
      return { command, code, stdout: stdout.replaceAll(place, 'PLACE'), stderr: stderr.replaceAll(place, 'PLACE') };
    };
    expect(await done(there)).toEqual(await done(here));
  }
  const names = server.names('b').filter((name) => name.startsWith('lying/'));
  expect(names).toEqual(filesIn(here).map((name) => `lying/${name}`));
});

test('a compressed tar in a bucket is converted like one on disk', async () => {
  const { gzipSync } = await import('node:zlib');
  const file = path.join(top, 'shard.tar.gz');
  fs.writeFileSync(file, gzipSync(fs.readFileSync(path.join(top, 'foreign', '000001.tar')), { level: 1 }));
  server.put('b/shard.tar.gz', fs.readFileSync(file));
  await expectTheSame('shard.tar.gz', ['convert', 'convert --max-shard-samples 7 --name x']);
});

test('a conversion from a bucket does not resume if its shards have changed', async () => {
  const output = path.join(emptyFolder(), 'output');
  const convert = () => shardtool('convert', 's3://b/changing', output);
  server.put('b/changing/000000.tar', fs.readFileSync(path.join(top, 'foreign', '000000.tar')));
  expect((await convert()).stdout).toContain('Converted 20 samples');
  expect((await convert()).stdout).toContain('already has all samples');
  server.put('b/changing/000000.tar', fs.readFileSync(path.join(top, 'foreign', '000001.tar')));
  expect((await convert()).stderr).toContain('--overwrite');
});

test('a location in a bucket with only images, or with nothing, is reported as such', async () => {
  expect((await shardtool('ls', 's3://b/images')).stderr).toContain('holds images as single files');
  const nowhere = await shardtool('ls', 's3://b/nowhere');
  expect(nowhere.stderr).toBe('shardtool: Nothing found at s3://b/nowhere: check the location.\n');
  // As for a folder that does not exist.
  expect(nowhere.code).toBe(2);
});
