import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { LmdbDatabase, lmdb, lmdbImages, openSource } from '@shardtool/format';
import { afterAll, expect, test } from 'vitest';
import { shapes, writeDatabase } from './lmdb-shards.js';
import { pythonWith, runPython, systemPythonWith } from './python.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-lmdb-python-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The lmdb of PyPI with the newest liblmdb, and that of Debian with the liblmdb of the distribution. */
const interpreters: [name: string, path: string][] = [];
for (const [name, path] of [
  ['PyPI', pythonWith('lmdb')],
  ['Debian', systemPythonWith('lmdb')],
] as const) {
  if (path !== null) interpreters.push([name, path]);
}

type Entry = [key: string, bytes: number, crc: number];

/** Reads a database front to back, back to front and by key, adds and deletes in it, and reads it again. */
const READ_AND_CHANGE = `
import json, sys, zlib, lmdb
path = json.load(sys.stdin)
env = lmdb.open(path, map_size=1 << 28, subdir=True)
with env.begin() as txn:
    entries = [(bytes(k), bytes(v)) for k, v in txn.cursor()]
    back = [bytes(k) for k in txn.cursor().iterprev(values=False)]
    assert back == [k for k, v in entries][::-1]
    assert all(txn.get(k) == v for k, v in entries)
    cursor = txn.cursor()
    for k, v in entries[:: max(1, len(entries) // 50)]:
        assert cursor.set_range(k) and cursor.key() == k and cursor.value() == v
    stat = txn.stat()
with env.begin(write=True) as txn:
    for i, (k, v) in enumerate(entries):
        if i % 3 == 0:
            assert txn.delete(k)
    for i in range(100):
        txn.put(b"new-%d" % i, bytes([i]) * (i * 90))
with env.begin() as txn:
    kept = {bytes(k): bytes(v) for k, v in txn.cursor()}
wanted = {k: v for i, (k, v) in enumerate(entries) if i % 3 != 0}
wanted.update({b"new-%d" % i: bytes([i]) * (i * 90) for i in range(100)})
assert kept == wanted
env.close()
listed = lambda pairs: [[k.hex(), len(v), zlib.crc32(v)] for k, v in pairs]
print(json.dumps({"entries": stat["entries"], "before": listed(entries), "after": listed(sorted(kept.items()))}))
`;

async function read(place: string): Promise<Entry[]> {
  const source = await openSource(join(place, 'data.mdb'));
  const database = await LmdbDatabase.open(source);
  const found: Entry[] = [];
  for await (const entries of database.scan()) {
    for (const entry of entries) {
      const value = await database.value(entry);
      found.push([entry.key.toString('hex'), value.length, crc32(value)]);
    }
  }
  await source.close();
  return found;
}

for (const [name, interpreter] of interpreters) {
  for (const [shape, samples] of Object.entries(shapes)) {
    test(`lmdb of ${name} reads and changes the database "${shape}", which is read back correctly`, async () => {
      const place = writeDatabase(join(folder, `${name}-${shape}`), samples(), lmdbImages);
      const entries = await read(place);
      const python = runPython<{ entries: number; before: Entry[]; after: Entry[] }>(
        READ_AND_CHANGE,
        place,
        interpreter,
      );
      const count = Array.from(samples()).length;
      expect([python.entries, entries.length]).toEqual([count, count]);
      expect(JSON.stringify(entries)).toBe(JSON.stringify(python.before));
      expect(JSON.stringify(await read(place))).toBe(JSON.stringify(python.after));
    });
  }

  test(`lmdb of ${name} finds the fields of a sample in a msgpack map`, () => {
    const place = writeDatabase(
      join(folder, `${name}-maps`),
      [
        ['a', 3, 7],
        ['b', 9000, 8],
      ],
      lmdb,
    );
    const program = `
import json, sys, lmdb
with lmdb.open(json.load(sys.stdin), readonly=True, lock=False) as env, env.begin() as txn:
    print(json.dumps([bytes(txn.get(k)[:8]).hex() for k in (b"a", b"b")]))
`;
    expect(runPython(program, place, interpreter)).toEqual(['81a36a7067c40307', '81a36a7067c52328']);
  });
}

const fuzzer = pythonWith('lmdb');
test.runIf(fuzzer)(
  'databases that Python fills, deletes from and fills again at random are read back correctly',
  async () => {
    const program = `
import json, os, random, sys, zlib, lmdb
place, seeds = json.load(sys.stdin)
result = []
for seed in range(seeds):
    rng = random.Random(seed)
    path = os.path.join(place, str(seed))
    env = lmdb.open(path, map_size=1 << 27, sync=False)
    for round in range(rng.randint(1, 6)):
        with env.begin(write=True) as txn:
            for _ in range(rng.randint(0, 400)):
                key = b"k%d" % rng.randint(0, 500) + b"x" * rng.choice([0, 0, 5, 200, 500])
                if rng.random() < 0.35:
                    txn.delete(key)
                else:
                    txn.put(key, rng.randbytes(rng.choice([0, 10, 300, 1500, 2030, 4080, 9000, 40000]) + rng.randint(0, 9)))
    with env.begin() as txn:
        result.append([[bytes(k).hex(), len(v), zlib.crc32(v)] for k, v in txn.cursor()])
    env.close()
print(json.dumps(result))
`;
    const place = join(folder, 'random');
    mkdirSync(place);
    const wanted = runPython<Entry[][]>(program, [place, 12]);
    for (const [seed, entries] of wanted.entries()) {
      expect(JSON.stringify(await read(join(place, String(seed))))).toBe(JSON.stringify(entries));
    }
  },
);
