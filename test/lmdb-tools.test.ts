import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { LmdbDatabase, lmdbImages, openSource } from '@shardtool/format';
import { afterAll, expect, test } from 'vitest';
import { shapes, writeDatabase } from './lmdb-shards.js';
import { pythonWith, runPython } from './python.js';
import { TIMES } from './repetitions.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-lmdb-tools-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Reads large databases with Python as well: number of entries, last key, and the crc32 of all values. */
const python = pythonWith('lmdb');
const SUM = `
import json, sys, zlib, lmdb
with lmdb.open(json.load(sys.stdin), readonly=True, lock=False) as env, env.begin() as txn:
    crc = count = 0
    for key, value in txn.cursor():
        crc = zlib.crc32(value, crc)
        count += 1
    print(json.dumps([count, bytes(key).decode(), crc]))
`;

const tools = spawnSync('mdb_stat', ['-V']).status === 0;
if (!tools) {
  if (process.env.SHARDTOOL_REQUIRE_PYTHON) throw new Error('mdb_stat is not here: install lmdb-utils');
  console.log('mdb_stat is not here (lmdb-utils): the tests that need it are skipped');
}

function run(...command: string[]): Buffer {
  const { status, stdout, stderr, signal } = spawnSync(command[0]!, command.slice(1), {
    maxBuffer: 1 << 28,
    timeout: 120_000,
  });
  expect([status, signal, stderr.toString()]).toEqual([0, null, '']);
  return stdout;
}

/** The output of mdb_dump: entries as hexadecimal. */
function dumped(place: string): [key: string, value: string][] {
  const lines = run('mdb_dump', place).toString('latin1').split('\n');
  const body = lines.slice(lines.indexOf('HEADER=END') + 1, lines.indexOf('DATA=END'));
  return Array.from({ length: body.length / 2 }, (_, i) => [body[2 * i]!.trim(), body[2 * i + 1]!.trim()]);
}

/** Key and value of everything that the reader finds, as hexadecimal. */
async function read(place: string): Promise<[string, string][]> {
  const source = await openSource(join(place, 'data.mdb'));
  const database = await LmdbDatabase.open(source);
  const found: [string, string][] = [];
  for await (const entries of database.scan()) {
    for (const entry of entries) found.push([entry.key.toString('hex'), (await database.value(entry)).toString('hex')]);
  }
  await source.close();
  return found;
}

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

for (const [name, samples] of Object.entries(shapes)) {
  test.runIf(tools)(`mdb_stat, mdb_dump and mdb_copy accept the database "${name}"`, async () => {
    const place = writeDatabase(join(folder, name), samples(), lmdbImages);
    const entries = Array.from(samples(), ([key, bytes, fill]): [string, string] => {
      return [Buffer.from(key).toString('hex'), Buffer.alloc(bytes, fill).toString('hex')];
    }).sort(byKey);
    const wanted = JSON.stringify(entries);
    const statistics = run('mdb_stat', '-aef', place).toString();
    expect(statistics).toContain(`Entries: ${entries.length}\n`);
    expect(statistics).toContain('Free pages: 0\n');
    const same = (found: [string, string][]) => JSON.stringify(found) === wanted;
    expect(same(dumped(place))).toBe(true);
    for (const flags of [[], ['-c']]) {
      const copy = join(folder, `${name}-copy${flags.join('')}`);
      mkdirSync(copy);
      run('mdb_copy', ...flags, place, copy);
      expect(same(await read(copy))).toBe(true);
    }
  });
}

test.runIf(tools)('the database that mdb_load makes of a dump reads back equal', async () => {
  const place = writeDatabase(join(folder, 'to-load'), shapes.mixed!(), lmdbImages);
  const loaded = join(folder, 'loaded');
  mkdirSync(loaded);
  const { status } = spawnSync('mdb_load', [loaded], { input: run('mdb_dump', place) });
  expect(status).toBe(0);
  expect(JSON.stringify(await read(loaded))).toBe(JSON.stringify(await read(place)));
});

test.runIf(tools)('a value of 100 MB is stored as one run of pages', async () => {
  const place = writeDatabase(join(folder, 'huge'), [['huge', 100_000_000, 7]], lmdbImages);
  expect(run('mdb_stat', place).toString()).toContain('Overflow pages: 24415\n');
  const copy = join(folder, 'huge-copy');
  mkdirSync(copy);
  run('mdb_copy', '-c', place, copy);
  const source = await openSource(join(copy, 'data.mdb'));
  const value = await (await LmdbDatabase.open(source)).get('huge');
  expect(value!.equals(Buffer.alloc(100_000_000, 7))).toBe(true);
  if (python !== null) expect(runPython(SUM, place)).toEqual([1, 'huge', crc32(value!)]);
  await source.close();
});

test.runIf(tools)(
  'a hundred thousand entries are counted by mdb_stat and read in order',
  async () => {
    const count = 100_000 * Math.min(TIMES, 10);
    const place = join(folder, 'million');
    const keys = function* (): Generator<[string, number, number]> {
      for (let i = 0; i < count; i++) yield [`sample-${(i * 7919) % count}`, 16, i & 255];
    };
    writeDatabase(place, keys(), lmdbImages);
    expect(run('mdb_stat', '-a', place).toString()).toContain(`Entries: ${count}\n`);
    const source = await openSource(join(place, 'data.mdb'));
    const database = await LmdbDatabase.open(source);
    let found = 0;
    for await (const entries of database.scan()) found += entries.length;
    expect(found).toBe(count);
    expect((await database.get(`sample-${7919 * 10}`))!.equals(Buffer.alloc(16, 10))).toBe(true);
    await source.close();
  },
  120_000,
);

test.runIf(tools)('a lock file that a tool left is ignored', async () => {
  const place = writeDatabase(join(folder, 'locked'), shapes.one!(), lmdbImages);
  copyFileSync(join(place, 'data.mdb'), join(place, 'lock.mdb'));
  expect(await read(place)).toEqual([['6f6e6c79', '0101010101']]);
  expect(readFileSync(join(place, 'data.mdb')).length % 4096).toBe(0);
});
