/** Files in the layouts of other software, with random damage, in a child process that is watched. */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { TIMES } from './repetitions.js';

interface Kind {
  readonly layout: string;
  readonly files: readonly string[];
  /** For files whose names match this pattern, the result must be the written data or an error. */
  readonly checked: string;
  /** The file lists the other files, and is not damaged. */
  readonly isList?: true;
  /** Each field must equal the written field, not just any of them. */
  readonly isInOrder?: true;
}

const ALL = '.';
const NONE = '^$';
const at = (name: string) => path.resolve('test/fixtures', name);
const inFolder = (name: string, pattern: RegExp) =>
  readdirSync(at(name))
    .filter((file) => pattern.test(file))
    .sort()
    .map((file) => at(`${name}/${file}`));
/** Like ImageNet: one tar per class. */
function tarOfTars(): string {
  const folder = emptyFolder();
  const classes = ['a', 'b'];
  for (const name of classes)
    execFileSync('tar', ['-cf', path.join(folder, `${name}.tar`), '-C', at('lists/photos'), name]);
  execFileSync('tar', ['-cf', path.join(folder, 'all'), '-C', folder, ...classes.map((name) => `${name}.tar`)]);
  return path.join(folder, 'all');
}
const KINDS: Record<string, Kind> = {
  Parquet: {
    ...{ layout: 'parquet', checked: '^snappy', isInOrder: true },
    files: inFolder('parquet/pages', /^(snappy-.|plain|zstd-1|gzip-2|delta)\./),
  },
  TFRecord: {
    ...{ layout: 'tfrecord', checked: ALL, isInOrder: true },
    files: [at('tfrecord/photos/train-00000-of-00002'), at('tfrecord/short.tfrecord')],
  },
  MDS: {
    ...{ layout: 'mds', checked: NONE },
    files: [at('mds/photos/shard.00000.mds'), ...inFolder('mds/compressed', /\.zstd$/)],
  },
  zip: {
    ...{ layout: 'zip', checked: ALL },
    files: [at('zip/stored.zip'), at('zip/deflated.zip'), at('zip/zip64.zip')],
  },
  CIFAR: { layout: 'cifar', checked: NONE, files: [at('arrays/cifar10/data_batch_1.bin')] },
  IDX: {
    ...{ layout: 'idx', checked: NONE },
    files: [at('arrays/mnist/train-images-idx3-ubyte'), at('arrays/mnist/t10k-images-idx3-ubyte.gz')],
  },
  HDF5: {
    ...{ layout: 'hdf5', checked: '^arrays', isInOrder: true },
    files: [at('hdf5/arrays.h5'), at('hdf5/bytes.h5'), at('hdf5/old.h5')],
  },
  LitData: {
    ...{ layout: 'litdata', checked: NONE },
    files: [
      at('litdata/photos/chunk-0-0.bin'),
      at('litdata/tuples/chunk-0-1.bin'),
      at('litdata/compressed/chunk-0-0.zstd.bin'),
    ],
  },
  'a tar of tars': { layout: 'tar of tars', checked: NONE, files: [tarOfTars()] },
  'the list of a folder': {
    ...{ layout: 'folder', isList: true, checked: ALL },
    files: [at('lists/metadata.jsonl'), at('lists/metadata.csv')],
  },
  'the list of MDS and of LitData': {
    ...{ layout: 'mds', isList: true, checked: NONE },
    files: [at('mds/photos/index.json'), at('litdata/photos/index.json'), at('litdata/tuples/index.json')],
  },
};
const CASES = 100 * TIMES;
/** Time limit for one file. */
const WATCHDOG_MS = 60_000;

const kindNames = Object.keys(KINDS);
/** Positions as fractions of the whole, half of them where a layout starts or ends. */
const place = fc.oneof(fc.nat(1_000_000), fc.oneof(fc.nat(60_000), fc.integer({ min: 900_000, max: 1_000_000 })));
const damage = fc.record({
  file: fc.nat(11),
  isHere: fc.boolean(),
  cut: fc.option(place, { freq: 5 }),
  flips: fc.array(fc.record({ at: place, bit: fc.nat(7) }), { maxLength: 4 }),
  numbers: fc.array(
    fc.record({ at: place, number: fc.oneof(fc.nat(64), fc.constantFrom(0xffff, 0x7fffffff, 0xffffffff)) }),
    { maxLength: 2 },
  ),
  move: fc.option(fc.record({ from: place, to: place, bytes: fc.constantFrom(2, 8, 100, 1000) }), { freq: 3 }),
});

test(
  `random damage of ${kindNames.join(', ')} gives samples or a ShardtoolError, and never other bytes if there are checksums`,
  async () => {
    for (const { files } of Object.values(KINDS)) expect(files.filter((file) => !existsSync(file))).toEqual([]);
    const damages = fc.sample(damage, CASES * kindNames.length);
    const cases = damages.map((one, i) => ({ kind: kindNames[i % kindNames.length]!, ...one }));
    const reader = fork(fileURLToPath(new URL('foreign-damage-child.mjs', import.meta.url)), [], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const ended = once(reader, 'exit');
    const outcomes: { number: number; fields: number; trouble: string | null }[] = [];
    const guard = setTimeout(() => reader.kill('SIGKILL'), WATCHDOG_MS);
    reader.on('message', (message) => {
      guard.refresh();
      outcomes.push(message as (typeof outcomes)[number]);
    });
    reader.send({ kinds: KINDS, cases });
    const [code, signal] = await ended;
    clearTimeout(guard);
    expect([code, signal], `at ${JSON.stringify(cases[outcomes.length])}`).toEqual([0, null]);
    expect(outcomes).toHaveLength(cases.length);
    const wrong = outcomes.filter(({ trouble }) => trouble !== null);
    expect(
      wrong.map(({ number, trouble }) => [cases[number]!.kind, trouble]),
      JSON.stringify(cases[wrong[0]?.number ?? 0]),
    ).toEqual([]);
    for (const name of kindNames) {
      // There is not so much damage that nothing can be read.
      expect(
        outcomes.some(({ number, fields }) => cases[number]!.kind === name && fields > 0),
        name,
      ).toBe(true);
    }
  },
  WATCHDOG_MS * 4 * TIMES,
);
