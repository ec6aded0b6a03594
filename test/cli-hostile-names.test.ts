import { appendFileSync, copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Outcome, shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { archive, entry, pax, record } from './tar-craft.js';

const photo = readFileSync('examples/photos/cat/cat_001.jpg');
/** ESC [ 2 J, BEL, the C1 control CSI, a mark that reverses the direction of text, TAB and newline. */
const STEERING = '\u001b[2J\u0007\u009b31m\u202e\t\n';

/** Fails if output contains control sequences of a terminal. */
function expectHarmless({ stdout, stderr }: Outcome): void {
  for (const text of [stdout, stderr]) expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\u202a-\u202e]/u);
}

/** A foreign tar with such names as keys and fields, including long ones, and such text as a value. */
function hostileTar(): string {
  const keys = [`a${STEERING}b`, 'plain', 'k'.repeat(5000)];
  const entries = keys.flatMap((key) => [
    pax(record('path', `${key}.jpg`)),
    entry({ name: 'x.jpg' }, photo),
    pax(record('path', `${key}.f\u001bg.json`)),
    entry({ name: 'x.json' }, '{"a": "\u202e"}'),
  ]);
  const file = path.join(emptyFolder(), `s\u001b]0;t\u0007.tar`);
  writeFileSync(file, archive(...entries));
  return file;
}

const tar = hostileTar();

test.each([
  ['ls', [tar]],
  ['stats', [tar]],
  ['verify', [tar, '--json']],
  ['bench', [tar, '--epochs', '1', '--transform', 'eval224']],
  ['cat', [tar, `no${STEERING}`]],
  ['cat', [tar, 'k'.repeat(4999)]],
  ['convert', [tar, path.join(emptyFolder(), `o${STEERING}`)]],
  ['unpack', [tar, path.join(emptyFolder(), `o${STEERING}`)]],
  ['pack', [`/no/such${STEERING}`, path.join(emptyFolder(), 'out')]],
  ['ls', [tar, `--no${STEERING}`]],
] as const)('%s prints names as plain text, without control sequences', async (command, words) => {
  const outcome = await shardtool(command, ...words);
  expectHarmless(outcome);
  if (outcome.code === 0) return;
  expect(outcome.stderr).not.toContain('This is a bug in shardtool');
  expect(outcome.stderr.trimEnd().split('\n').at(-1)!.length).toBeLessThan(2000);
});

test('ls prints one line per sample, whatever its name, and --json has the unchanged name', async () => {
  const { stdout } = await shardtool('ls', tar, '--samples');
  const lines = stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines.map((line) => line.split('\t').length)).toEqual([4, 4, 4]);
  expect(lines[0]).toMatch(/^a\\u001b\[2J\\u0007\\u009b31m\\u202e\\t\\nb\t-\t\d+x\d+\t.*f\\u001bg\.json:\d+/);
  const json = await shardtool('ls', tar, '--samples', '--json');
  const keys = json.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).key);
  expect(keys).toEqual([`a${STEERING}b`, 'plain', 'k'.repeat(5000)]);
});

test('a folder with such names can be packed and listed without control sequences in the output', async () => {
  const source = path.join(emptyFolder(), `s${STEERING}`);
  const name = STEERING.replace('\n', '');
  mkdirSync(path.join(source, `c${name}`), { recursive: true });
  copyFileSync('examples/photos/cat/cat_001.jpg', path.join(source, `c${name}`, `p${name}.jpg`));
  writeFileSync(path.join(source, `c${name}`, `bad${name}.jpg`), 'no image');
  const output = path.join(emptyFolder(), `o${STEERING}`);
  const strict = await shardtool('pack', source, output);
  expectHarmless(strict);
  expect(strict.code).toBe(1);
  const packed = await shardtool('pack', source, output, '--on-bad', 'quarantine', '--max-bad', '100%', '--restart');
  expectHarmless(packed);
  expect(packed.stderr).toBe('');
  for (const command of ['ls', 'stats']) expectHarmless(await shardtool(command, output));
  const shard = readdirSync(output).find((file) => file.endsWith('.tar'))!;
  appendFileSync(path.join(output, shard), 'more');
  const damaged = await shardtool('verify', output);
  expect(damaged.code).toBe(1);
  expectHarmless(damaged);
});

test('names of splits, new labels and datasets are printed as plain text', async () => {
  const folder = path.join(emptyFolder(), 'shards');
  await shardtool('pack', 'examples/photos', folder);
  const output = (name: string) => path.join(emptyFolder(), `${name}${STEERING}`);
  const labels = `${output('labels')}.csv`;
  writeFileSync(labels, 'key,class\ncat/cat_001,dog\n');
  for (const words of [
    ['subset', folder, 'cats', '--classes', 'cat', '--copy', output('copy')],
    ['relabel', folder, '--labels', labels, '--copy', output('copy')],
    ['merge', folder, folder, '--output', `${output('both')}.json`, '--copy', output('copy')],
  ]) {
    const outcome = await shardtool(...words);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expectHarmless(outcome);
    expect(outcome.stdout).toContain('\\u001b[2J');
    expect(outcome.stdout.trimEnd().split('\n').at(-1)).toMatch(/^Copied \d+ samples in \d+ shards? to \S+\.$/);
  }
});
