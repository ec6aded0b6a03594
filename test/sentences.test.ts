import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { addOverlay } from '@shardtool/reader';
import { convert, pack } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { COMMAND_NAMES } from '#cli/commands/all';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { filesIn, jpeg, newFolder, PNG, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

const source = tree({
  'a/1.jpg': readFileSync('test/fixtures/odd-images/gray.jpg'),
  'a/1.json': '{"one": 1}',
  'a/2.png': PNG,
  'b/3.jpg': jpeg(3),
  'b/3.txt': 'three',
  'labels.csv': 'path,score\na/1.jpg,1\na/2.png,2\nb/3.jpg,3\n',
  'list.json': '[{"name": "resize", "size": 8}]',
  'objects.json': JSON.stringify({
    images: [{ id: 1, file_name: 'a/1.jpg', width: 1, height: 1 }],
    annotations: [{ id: 1, image_id: 1, category_id: 7, bbox: [0, 0, 1, 1], area: 1, iscrowd: 0 }],
    categories: [{ id: 7, name: 'cat' }],
  }),
  'files.txt': 'a/1.jpg\nb/3.jpg\n',
  'classes.txt': 'a\nb\n',
});
const inputs: string[] = [];
for (const format of ['tar', 'lmdb', 'msgpack'] as const) {
  const folder = newFolder();
  const labels = path.join(source, 'labels.csv');
  await pack(source, folder, {
    format,
    maxShardSamples: 2,
    labels,
    ...(format === 'tar' && { index: ['wids', 'dali'] }),
  });
  await addOverlay(folder, { name: 'first', excludeKeys: ['a/1'] });
  inputs.push(folder);
}
// A tar of other software has no index and no manifest.
const foreign = emptyFolder();
cpSync(path.join(inputs[0]!, '000000.tar'), path.join(foreign, 'foreign.tar'));
inputs.push(foreign, source);
// Layouts of other software: as written by convert, and as written by their own tools.
for (const format of ['parquet', 'tfrecord', 'mds'] as const) {
  const folder = newFolder();
  await convert(inputs[0]!, folder, { format });
  inputs.push(folder);
}
for (const files of [
  ['hdf5/arrays.h5'],
  ['hdf5/splits.hdf5'],
  ['zip/deflated.zip'],
  ['arrays/mnist'],
  ['mds/compressed'],
  ['img2dataset'],
]) {
  const folder = emptyFolder();
  for (const file of files)
    cpSync(path.join('test/fixtures', file), path.join(folder, path.basename(file)), { recursive: true });
  inputs.push(folder);
}

const COMMANDS: readonly ((input: string, output: string) => string[])[] = [
  (input) => ['ls', input],
  (input) => ['ls', input, '--samples'],
  (input) => ['ls', input, '--samples', '--json'],
  (input) => ['stats', input],
  (input) => ['cat', input, 'a/1'],
  (input) => ['cat', input, 'b/3', 'txt'],
  (input, output) => ['unpack', input, output],
  (input) => ['verify', input, '--workers', '1'],
  (input) => ['verify', input, '--workers', '1', '--check', 'decode'],
  (input) => ['verify', input, '--workers', '1', '--fix', '--source', source],
  (input) => ['verify', input, '--workers', '1', '--fix', '--json'],
  (input) => ['index', input],
  (input) => ['index', input, '--overwrite', '--index', 'wids,dali'],
  (input, output) => ['convert', input, output, '--workers', '1'],
  (input, output) => ['convert', input, output, '--format', 'lmdb', '--workers', '1'],
  (input, output) => ['convert', path.join(input, '000000.tar'), output, '--workers', '1'],
  (input) => ['transforms', input],
  (input) => ['plan', input],
  (input) => ['plan', input, '--where', 'score > 1'],
  (input) => ['commit', input],
  (input) => ['log', input],
  (input) => ['restore', input, '0123456789'],
  (input) => ['erase', input, '--where', 'width < 1'],
  (input) => ['gc', input, '--keep', '1'],
  (input) => ['compact', input, '--dry-run'],
  (input) => ['split', input, '--val', '0.2'],
  (input, output) => [
    'preview',
    input,
    '--transform',
    path.join(input, 'list.json'),
    '--output',
    path.join(output, 'x.png'),
  ],
  (input, output) => ['preview', input, '--output', `${output}.png`, '--grid', '2x1'],
  (input, output) => ['pack', input, output, '--workers', '1'],
  (input, output) => ['pack', input, output, '--workers', '1', '--labels', path.join(input, 'labels.csv')],
  (input, output) => ['pack', input, output, '--workers', '1', '--files', path.join(input, 'files.txt')],
  (input, output) => [
    'pack',
    input,
    output,
    '--workers',
    '1',
    '--classes',
    path.join(input, 'classes.txt'),
    '--dedupe',
  ],
  (input, output) => ['pack', input, output, '--workers', '1', '--on-bad', 'quarantine', '--resize', '8'],
  (input) => ['index', input, '--columns', 'json.one', '--labels', path.join(input, 'labels.csv')],
  (input) => ['bench', input, '--transform', 'eval224', '--workers', '1', '--batch-size', '2'],
  (input) => ['tune', input, '--cpu-budget', '1', '--batch-size', '2', '--seconds', '1'],
  (input) => ['overlay', 'add', input, 'clean', '--exclude-where', 'width > 2'],
  (input) => ['overlay', 'add', input, 'more', '--labels', path.join(input, 'labels.csv')],
  (input) => ['overlay', 'ls', input],
  (input) => ['overlay', 'show', input, 'first'],
  (input) => ['overlay', 'log', input, 'first'],
  (input) => ['overlay', 'rm', input, 'first'],
  (input) => ['ls', input, '--overlay', 'first'],
  (input, output) => ['convert', input, output, '--overlay', 'first', '--workers', '1'],
  (input) => ['subset', input, 'some', '--classes', 'a'],
  (input) => ['relabel', input, '--labels', path.join(input, 'labels.csv')],
  (input, output) => ['merge', input, source, '--output', `${output}.json`],
  (input, output) => ['convert', input, output, '--format', 'parquet', '--workers', '1'],
  (input, output) => ['convert', input, output, '--format', 'tfrecord', '--workers', '1'],
  (input, output) => ['convert', input, output, '--format', 'mds', '--workers', '1'],
  (input, output) => ['convert', input, output, '--labels', path.join(input, 'labels.csv'), '--workers', '1'],
  (input, output) => ['convert', path.join(input, 'arrays.h5'), output, '--workers', '1'],
  (input) => ['ls', path.join(input, 'splits.hdf5'), '--features', 'image=train/x', '--samples'],
  (input, output) => ['convert', path.join(input, 'mnist'), output, '--workers', '1'],
  (input, output) => ['convert', path.join(input, '000000.parquet'), output, '--workers', '1'],
  (input) => ['inspect', input, '--workers', '1'],
  (input) => ['inspect', input, '--workers', '1', '--against', source, '--json'],
  (input) => ['ls', input, '--samples', '--where', 'inspect.sharpness < 20'],
  (input) => ['cache', 'ls', input],
  (input) => ['cache', 'clear', input],
  (input) => ['completion', path.basename(input)],
  (input, output) => ['pack', input, output, '--workers', '1', '--coco', path.join(input, 'objects.json')],
  (input, output) => ['pack', input, output, '--workers', '1', '--pair', 'b=seg.png', '--dry-run', '--check', 'header'],
  (input) => ['pack', source, input, '--append', '--workers', '1'],
  (input) => ['pack', source, input, '--overwrite', '--workers', '1'],
  (input) => ['pack', source, input, '--workers', '1', '--labels', path.join(source, 'labels.csv')],
];

const damage = fc.record({
  file: fc.nat(1000),
  how: fc.constantFrom('flip', 'cut', 'zero', 'garbage', 'text', 'remove', 'folder', 'empty', 'json'),
  at: fc.nat(9999),
  length: fc.integer({ min: 1, max: 2000 }),
});
type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never;

/** A valid JSON file of another kind. */
const OTHER_JSON = [
  'null',
  '[]',
  '{}',
  '7',
  '"text"',
  '{"version": 1}',
  '{"version": "x", "shards": 3}',
  '[[[',
  '{"a":\n1,,}',
];

function apply(folder: string, { file, how, at, length }: Damage): void {
  const files = filesIn(folder);
  if (files.length === 0) return;
  const name = path.join(folder, files[file % files.length]!);
  const bytes = readFileSync(name);
  const from = Math.floor((at / 10_000) * bytes.length);
  const to = Math.min(bytes.length, from + length);
  if (how === 'remove' || how === 'folder') rmSync(name);
  if (how === 'folder') mkdirSync(name);
  if (how === 'remove' || how === 'folder') return;
  if (how === 'flip') bytes[from]! ^= 1 << (length & 7);
  if (how === 'zero') bytes.fill(0, from, to);
  if (how === 'garbage') for (let i = from; i < to; i++) bytes[i] = (i * 7919 + length) & 255;
  const text = how === 'json' ? OTHER_JSON[at % OTHER_JSON.length]! : `\u001b[2J line\nnext\tline ${length}\n`;
  if (how === 'text' || how === 'json') writeFileSync(name, text);
  else writeFileSync(name, how === 'cut' ? bytes.subarray(0, from) : how === 'empty' ? '' : bytes);
}

/** The tested commands. */
const RUNS = 40 * TIMES;

test('every command is tested', () => {
  const words = COMMANDS.map((command) => command('input', 'output')[0]);
  // The page of view has separate tests: it runs until it is stopped.
  expect([...new Set(words), 'view'].sort()).toEqual([...COMMAND_NAMES].sort());
});

test(
  'whatever is damaged, a command ends with one sentence and no unexpected error',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(inputs.length - 1),
        fc.nat(COMMANDS.length - 1),
        fc.array(damage, { minLength: 1, maxLength: 3 }),
        async (input, command, list) => {
          const place = emptyFolder();
          const folder = path.join(place, 'input');
          cpSync(inputs[input]!, folder, { recursive: true });
          for (const one of list) apply(folder, one);
          const words = COMMANDS[command]!(folder, path.join(place, 'output'));
          const errors = (await shardtool(...words)).stderr;
          const what = `${words.join(' ')}: ${errors}`;
          expect(errors, what).not.toMatch(/foresaw|\n\s+at |\[object|is not a function/);
          expect(errors.trimEnd().split('\n').length, what).toBe(1);
          expect(errors, what).not.toContain('\u001b');
          rmSync(place, { recursive: true, force: true });
        },
      ),
      { numRuns: RUNS, endOnFailure: true },
    );
  },
  60_000 + RUNS * 3000,
);

test.each([[['--bogus']], [['--parent', String(process.pid), '--slot-file', '0']]])(
  'the reader process of Python rejects unknown arguments in one line: %j',
  async (args) => {
    const child = spawnSync(process.execPath, ['packages/reader/lib/main.js', ...args], {
      input: Buffer.alloc(64, 'x'),
    });
    expect(child.status).toBe(1);
    expect(child.stderr.toString()).toMatch(/^The reader received a request that it does not know \(.*\n$/);
  },
);
