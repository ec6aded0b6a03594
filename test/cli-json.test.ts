import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { expect, test } from 'vitest';
import { RUNNABLE } from '#cli/commands/all';
import { shardtool } from './cli-here.js';
import { bin } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { faultsOf, JSON_SHAPES, schemaOf } from './json-shapes.js';

const shards = await packedPhotos();
const folder = emptyFolder();
const at = (name: string) => path.join(folder, name);
cpSync(shards, at('copied'), { recursive: true });

/** A successful command line for each command, in this order. `view` serves until it is stopped, and has a separate test. */
const SUCCESSES: Readonly<Record<string, readonly string[]>> = {
  pack: ['examples/photos', at('packed'), '--include', 'cat/**'],
  convert: [shards, at('lmdb'), '--format', 'lmdb'],
  index: [at('packed')],
  merge: [shards, at('packed'), '--output', at('both.json')],
  commit: [at('packed')],
  log: [at('packed')],
  restore: [at('copied'), (await readManifest(shards)).identity],
  erase: [at('copied'), '--where', 'key == "cat/cat_001"'],
  gc: [at('packed'), '--keep', '1'],
  compact: [at('packed'), '--dry-run'],
  ls: [shards],
  stats: [shards],
  inspect: [at('packed'), '--workers', '1'],
  preview: [at('packed'), '--grid', '2x2', '--output', at('grid.png')],
  cat: [shards, 'cat/cat_001', 'cls'],
  verify: [shards],
  split: [at('packed'), '--val', '50%'],
  subset: [at('packed'), 'half', '--share', '50%'],
  relabel: [at('packed'), '--labels', at('labels.csv')],
  'overlay add': [at('packed'), 'fewer', '--exclude-where', 'width > 0'],
  'overlay ls': [at('packed')],
  'overlay show': [at('packed'), 'fewer'],
  'overlay log': [at('packed'), 'fewer'],
  'overlay rm': [at('packed'), 'fewer'],
  plan: [shards],
  bench: [at('packed'), '--transform', 'raw', '--batch-size', '2'],
  tune: [at('packed'), '--cpu-budget', '1', '--batch-size', '4', '--seconds', '1'],
  transforms: [],
  unpack: [at('packed'), at('files')],
  'cache ls': [emptyFolder()],
  'cache clear': [emptyFolder()],
  completion: ['fish'],
};

/** Every line of standard output as JSON. */
function parsed(stdout: string): unknown[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

test('every command prints JSON of the published schema with --json, and nothing else on standard output', async () => {
  writeFileSync(at('labels.csv'), 'key,class\ncat/cat_001,dog\n');
  const names = RUNNABLE.map(({ name }) => name);
  expect([...Object.keys(SUCCESSES), 'view'].sort()).toEqual([...names].sort());
  for (const [name, words] of Object.entries(SUCCESSES)) {
    const { code, stdout, stderr } = await shardtool(...name.split(' '), ...words, '--json');
    expect([name, code, stderr]).toEqual([name, 0, '']);
    for (const value of parsed(stdout))
      expect([name, faultsOf(value, schemaOf(JSON_SHAPES[name]!))]).toEqual([name, []]);
  }
});

test('view prints only its address as JSON with --json; a signal right after that stops it, and keeps marks', async () => {
  const dataset = at('viewed');
  cpSync(shards, dataset, { recursive: true });
  const view = async (use: (address: string) => Promise<unknown>) => {
    const child = spawn(process.execPath, [bin, 'view', dataset, '--json', '--open'], {
      env: { ...process.env, PATH: '' },
    });
    let [stdout, stderr] = ['', ''];
    child.stderr.on('data', (text) => (stderr += text));
    const ended = once(child, 'close');
    const known = once(child.stdout, 'data');
    child.stdout.on('data', (text) => (stdout += text));
    await known;
    try {
      await use((JSON.parse(stdout) as { address: string }).address);
    } finally {
      child.kill('SIGINT');
    }
    expect(await ended).toEqual([0, null]);
    for (const value of parsed(stdout)) expect(faultsOf(value, schemaOf(JSON_SHAPES.view!))).toEqual([]);
    return stderr;
  };
  await view(async () => undefined);
  const messages = await view(async (address) => {
    const body = JSON.stringify({ index: 0, mark: { kind: 'exclude' } });
    const headers = { 'Content-Type': 'application/json' };
    expect((await fetch(`${address}api/mark`, { method: 'POST', headers, body })).status).toBe(200);
  });
  expect(messages).toContain('No browser could be opened');
  expect(messages).toContain('1 unsaved mark written');
});

test('every command reports an error as JSON with --json: a stable code, a message and the exit code', async () => {
  for (const { name, command } of RUNNABLE) {
    const { code, stdout, stderr } = await shardtool(...name.split(' '), '--json', '--no-such-option');
    const error = { code: 'ERR_SHARDTOOL_USAGE', message: expect.stringContaining('Unknown option'), exitCode: 2 };
    expect([name, code, parsed(stdout)]).toEqual([name, 2, [{ error }]]);
    expect(stderr).toMatch(/^shardtool: Unknown option --no-such-option/);
    // A dataset, source or folder that does not exist.
    const first = Object.keys(command.arguments)[0];
    if (first === undefined || command.isLocal === true) continue;
    const missing = Object.keys(command.arguments).map((argument) => (argument === 'name' ? 'x' : at('nowhere')));
    const needed = {
      merge: ['--output', at('x.json')],
      relabel: ['--labels', at('labels.csv')],
      split: ['--val', '50%'],
      gc: ['--keep', '1'],
      erase: ['--where', 'width > 1'],
    };
    const others = (needed as Readonly<Record<string, readonly string[]>>)[name] ?? [];
    const absent = await shardtool(...name.split(' '), ...missing, ...others, '--json');
    const [report] = parsed(absent.stdout) as { error: { code: string; exitCode: number } }[];
    expect([name, absent.code, report!.error.exitCode]).toEqual([name, 2, 2]);
    expect(faultsOf(report, schemaOf(JSON_SHAPES.error!)), name).toEqual([]);
    expect(report!.error.code, name).toMatch(/^ERR_SHARDTOOL_[A-Z_]+$/);
  }
});

test('the error about a dataset that does not exist, or about a loader without a shard, has the code of a missing file', async () => {
  const codes = async (...words: readonly string[]) => {
    const { stdout } = await shardtool(...words, '--json');
    return parsed(stdout).flatMap((line) => (line as { error?: { code: string } }).error?.code ?? []);
  };
  const missing = ['ERR_SHARDTOOL_FILE_NOT_FOUND'];
  for (const words of [['ls'], ['cat', '', 'key'], ['stats'], ['unpack', '', at('unpacked')]]) {
    const [command, _, ...others] = words as [string, string, ...string[]];
    expect([command, await codes(command, at('nowhere'), ...others)]).toEqual([command, missing]);
  }
  const incomplete = at('without-shard');
  cpSync(shards, incomplete, { recursive: true });
  rmSync(path.join(incomplete, '000000.tar'));
  for (const words of [
    ['bench', incomplete, '--transform', 'raw'],
    ['unpack', incomplete, at('unpacked-incomplete')],
    ['convert', incomplete, at('converted-incomplete')],
  ]) {
    expect([words[0], await codes(...words)]).toEqual([words[0], missing]);
  }
});

test('--log-format json writes errors to standard error as one object per line, with time and code', async () => {
  const { code, stdout, stderr } = await shardtool('ls', at('nowhere'), '--log-format', 'json');
  expect([code, stdout]).toEqual([2, '']);
  expect(parsed(stderr)).toEqual([
    expect.objectContaining({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: 'error',
      event: 'error',
      exitCode: 2,
      code: expect.stringMatching(/^ERR_SHARDTOOL_/),
    }),
  ]);
});

test('--json and --log-format count only as options, not after "--" and not as a command', async () => {
  const asKey = await shardtool('cat', shards, '--', '--json');
  expect([asKey.code, asKey.stdout]).toEqual([2, '']);
  const withValue = await shardtool('ls', at('nowhere'), '--json=true');
  expect(parsed(withValue.stdout)).toEqual([{ error: expect.objectContaining({ exitCode: 2 }) }]);
  for (const off of ['--json=false', '--no-json']) {
    expect((await shardtool('ls', at('nowhere'), '--json', off)).stdout).toBe('');
  }
  const unknown = await shardtool('json');
  expect([unknown.code, unknown.stderr]).toEqual([2, 'shardtool: Unknown command "json". See "shardtool --help".\n']);
});

test('lines of samples, faults and repairs match the published schema', async () => {
  const damaged = at('damaged');
  cpSync(shards, damaged, { recursive: true });
  const tar = path.join(damaged, readdirSync(damaged).find((file) => file.endsWith('.tar'))!);
  const bytes = readFileSync(tar);
  bytes[2000]! ^= 1;
  writeFileSync(tar, bytes);
  const lines = async (...words: string[]) => parsed((await shardtool(...words, '--json')).stdout);
  const all: [shape: string, values: unknown[]][] = [['ls/samples', await lines('ls', shards, '--samples')]];
  const verified = await lines('verify', damaged);
  expect(verified.length).toBeGreaterThan(1);
  all.push(['verify/fault', verified.slice(0, -1)], ['verify', verified.slice(-1)]);
  const repaired = await lines('verify', damaged, '--fix');
  all.push(['verify/fault', repaired.slice(0, -1)], ['verify/fix', repaired.slice(-1)]);
  for (const [shape, values] of all) {
    for (const value of values) expect([shape, faultsOf(value, schemaOf(JSON_SHAPES[shape]!))]).toEqual([shape, []]);
  }
});

test('docs/json.schema.json has a schema for every command by name, and the validator finds differences', async () => {
  const $defs = Object.fromEntries(Object.entries(JSON_SHAPES).map(([name, shape]) => [name, schemaOf(shape)]));
  expect(RUNNABLE.filter(({ name }) => !(name in $defs))).toEqual([]);
  const $schema = 'https://json-schema.org/draft/2020-12/schema';
  const description =
    'What the commands of shardtool print with --json: one definition per command; names with a slash are other lines of a command.';
  const text = `${JSON.stringify({ $schema, description, $defs }, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot('../docs/json.schema.json');
  const differs = ['$.bytes is missing', '$.pieces: string instead of integer'];
  expect(faultsOf({ pieces: 'x' }, $defs['cache ls']!)).toEqual(differs);
});
