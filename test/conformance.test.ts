import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { eraseSamples, Writer } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { found } from '../conformance/found.mjs';
import { emptyFolder, packedSmall } from './datasets.js';
import { pythonWith } from './python.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const SUITE = ['lmdb', 'lmdb-images', 'msgpack', 'one-shard', 'tar'];
const python = pythonWith();

function reader(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(python!, ['conformance/reader.py', ...args], {
    encoding: 'utf8',
    env: { ...process.env, PYTHONUTF8: '1' },
  });
  return { status, stdout, stderr };
}

const between = (random: () => number, low: number, high: number) => low + Math.floor(random() * (high - low + 1));

test('the conformance suite contains these datasets', () => {
  const folders = readdirSync('conformance', { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).sort()).toEqual(SUITE);
});

test.each(SUITE)(
  'the dataset %s of the conformance suite has the expected samples, orders and states',
  async (name) => {
    await using dataset = await openDataset(`conformance/${name}/dataset`);
    const expected = JSON.parse(readFileSync(`conformance/${name}/expected.json`, 'utf8'));
    const { states, ...rest } = await found(dataset);
    expect(rest).toEqual({ samples: expected.samples, orders: expected.orders });
    for (const [i, { state, rest: left }] of states.entries()) {
      // Later versions may add to a state.
      expect(state).toMatchObject(expected.states[i].state);
      expect(left).toEqual(expected.states[i].rest);
    }
  },
);

test.skipIf(python === null)('the Python reader finds the expected content in the conformance suite', () => {
  expect(reader('conformance')).toMatchObject({ status: 0, stderr: '' });
});

test.skipIf(python === null)('the Python reader agrees with shardtool on random datasets', async () => {
  const random = randomOf('conformance');
  for (let round = 0; round < 3 * TIMES; round++) {
    const folder = path.join(emptyFolder(), 'random');
    const samples = between(random, 1, 150);
    const format = (['tar', 'msgpack', 'lmdb'] as const)[round % 3]!;
    const packed = await packedSmall(
      { samples, classes: between(random, 1, 9) },
      { format, maxShardSamples: between(random, 1, samples) },
    );
    cpSync(packed, path.join(folder, 'dataset'), { recursive: true });
    await using dataset = await openDataset(packed);
    const expected = await found(dataset);
    writeFileSync(path.join(folder, 'expected.json'), JSON.stringify(expected));
    expect(reader('conformance', path.dirname(folder)), `round ${round}`).toMatchObject({ status: 0, stderr: '' });
    // This proves that the test can fail: one sample is different.
    expected.samples[0]!.key += 'x';
    writeFileSync(path.join(folder, 'expected.json'), JSON.stringify(expected));
    expect(reader('conformance', path.dirname(folder)).status, `round ${round}`).toBe(1);
  }
});

test.skipIf(python === null)(
  'the Python reader agrees with shardtool on samples without images, on lists of files and on gaps, also after erase',
  async () => {
    const random = randomOf('conformance, other kinds');
    for (let round = 0; round < 3 * TIMES; round++) {
      const folder = path.join(emptyFolder(), 'random');
      const location = path.join(folder, 'dataset');
      const samples = between(random, 2, 120);
      await using writer = new Writer(location, {
        format: (['tar', 'msgpack', 'lmdb'] as const)[round % 3]!,
        maxShardSamples: between(random, 1, samples),
        primary: 'txt',
        classes: ['a', 'b'],
        columns: { count: 'int', share: 'double', said: 'bool', name: 'string' },
      });
      for (let i = 0; i < samples; i++) {
        const pages = Array.from({ length: between(random, 0, 4) }, (_, page) => [
          `page.${page}.txt`,
          `${i} of ${page}`,
        ]);
        await writer.add({
          key: `k/${'\u{1f600}'.repeat(between(random, 0, 2))}${i}`,
          txt: ['0', '017', '18446744073709551615', '-5', 'caf\u00e9'][between(random, 0, 4)]!,
          ...Object.fromEntries(pages),
          ...(random() < 0.5 && { json: { i } }),
          ...(random() < 0.7 && { label: random() < 0.5 ? 'a' : 'b' }),
          columns: {
            count: random() < 0.3 ? null : between(random, -(2 ** 52), 2 ** 52),
            share: random() < 0.3 ? null : random() - 0.5,
            said: random() < 0.3 ? null : random() < 0.5,
            name: random() < 0.3 ? null : `n${between(random, 0, 9)}`,
          },
        });
      }
      await writer.close();
      const erased = await eraseSamples(location, { where: 'share > 0.3' }).catch((error) => error as Error);
      await using dataset = await openDataset(location);
      writeFileSync(path.join(folder, 'expected.json'), JSON.stringify(await found(dataset, { image: false })));
      const verdict = reader('conformance', path.dirname(folder));
      expect(verdict, `round ${round}: ${String(erased)}`).toMatchObject({ status: 0, stderr: '' });
    }
  },
);

test.skipIf(python === null)('the Python reader reports a changed byte at any position', () => {
  const random = randomOf('conformance, damaged');
  for (let round = 0; round < 12 * TIMES; round++) {
    const folder = path.join(emptyFolder(), 'damaged');
    cpSync(`conformance/${SUITE[round % SUITE.length]}/dataset`, folder, { recursive: true });
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (file) => path.extname(file) !== '' && !file.endsWith('.lmdb'),
    );
    const file = path.join(folder, files[between(random, 0, files.length - 1)]!);
    const bytes = readFileSync(file);
    const at = between(random, 0, bytes.length - 1);
    bytes[at]! ^= between(random, 1, 255);
    writeFileSync(file, bytes);
    const { status, stderr, stdout } = reader('verify', folder);
    expect({ status, isTraceback: stderr.includes('Traceback') }, `${file}, byte ${at}: ${stdout}${stderr}`).toEqual({
      status: 1,
      isTraceback: false,
    });
  }
});
