import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';
import { ShardtoolError, UnsupportedShardError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { openSource, type Source } from '../../source.js';
import { LmdbDatabase } from './read.js';

const fixtures = fileURLToPath(new URL('../../../../../test/fixtures/lmdb/', import.meta.url));
const expected: Record<string, [key: string, bytes: number, crc: number][]> = JSON.parse(
  readFileSync(`${fixtures}expected.json`, 'utf8'),
);

/** A file in memory. */
function memory(bytes: Buffer, location = 'x.mdb'): Source {
  const readAt = async (offset: number, target: Uint8Array) => bytes.copy(target, 0, offset);
  return { location, size: bytes.length, readAt, close: async () => {} };
}

const fixture = (name: string): Buffer => readFileSync(`${fixtures}${name}.mdb`);

/** A copy of a fixture with numbers overwritten. */
function changed(name: string, ...writes: [at: number, number: number, bytes?: number][]): Buffer {
  const bytes = fixture(name);
  for (const [at, number, length = 4] of writes) bytes.writeUIntLE(number, at, length);
  return bytes;
}

async function failure(bytes: Buffer): Promise<ShardtoolError> {
  try {
    const database = await LmdbDatabase.open(memory(bytes));
    for await (const entries of database.scan()) for (const entry of entries) await database.value(entry);
  } catch (error) {
    expect(error).toBeInstanceOf(ShardtoolError);
    return error as ShardtoolError;
  }
  throw new Error('nothing was wrong');
}

for (const name of Object.keys(expected)) {
  test(`the database "${name}" that liblmdb wrote reads back equal, by scan and by key`, async () => {
    const source = await openSource(`${fixtures}${name}.mdb`);
    const database = await LmdbDatabase.open(source);
    const found: [string, number, number][] = [];
    for await (const entries of database.scan()) {
      for (const entry of entries) {
        const value = await database.value(entry);
        found.push([entry.key.toString('hex'), value.length, crc32(value)]);
        expect(value.equals((await database.get(entry.key))!)).toBe(true);
        if (value.length > 0) {
          const direct = Buffer.alloc(value.length);
          await source.readAt(entry.offset, direct);
          expect(value.equals(direct)).toBe(true);
        }
      }
    }
    expect(found).toEqual(expected[name]);
    expect(database.entries).toBe(found.length);
    await source.close();
  });
}

test('a scan starts at the first key that is not less than the given one', async () => {
  const database = await LmdbDatabase.open(memory(fixture('plain')));
  const keys = async (from: string) => {
    const found: string[] = [];
    for await (const entries of database.scan(from)) found.push(...entries.map(({ key }) => key.toString()));
    return found;
  };
  const all = expected.plain!.map(([key]) => Buffer.from(key, 'hex').toString());
  for (const from of ['', '00000', '00123', '001230', '00499', 'size', 'size2', 'size81770', 'zzz']) {
    expect(await keys(from)).toEqual(all.filter((key) => key >= from));
  }
});

test('a missing key has no value', async () => {
  const database = await LmdbDatabase.open(memory(fixture('deleted')));
  for (const key of ['', 'a', 'key-1', 'key-2x', 'large-0', 'zzz', 'k'.repeat(600)]) {
    const known = expected.deleted!.some(([hex]) => hex === Buffer.from(key).toString('hex'));
    expect((await database.get(key)) !== undefined).toBe(known);
  }
  expect(await (await LmdbDatabase.open(memory(fixture('empty')))).get('a')).toBeUndefined();
});

test('the error for an unsupported kind of database names it', async () => {
  const refused = readdirSync(fixtures).filter((name) => name.startsWith('refused-'));
  const messages = new Map<string, string>();
  for (const file of refused) {
    const error = await failure(readFileSync(`${fixtures}${file}`));
    expect(error).toBeInstanceOf(UnsupportedShardError);
    expect(error.shard).toBe('x.mdb');
    messages.set(file, error.message);
  }
  expect(messages.get('refused-named.mdb')).toContain('has a named database');
  expect(messages.get('refused-dupsort.mdb')).toContain('MDB_DUPSORT');
  expect(messages.get('refused-reverse.mdb')).toContain('MDB_REVERSEKEY');
  expect(messages.get('refused-integer.mdb')).toContain('MDB_INTEGERKEY');
});

test('the error for a file of another machine or version names it', async () => {
  const magic = 0xbeefc0de;
  const swapped = Buffer.alloc(8192);
  swapped.writeUInt32BE(magic, 16);
  expect((await failure(swapped)).message).toContain('big-endian');
  expect((await failure(changed('empty', [16, 0], [12, magic]))).message).toContain('32-bit');
  expect((await failure(changed('empty', [16, 0], [24, magic], [28, 3]))).message).toContain(
    'LMDB 1.x (data format 3)',
  );
  expect((await failure(changed('empty', [20, 2]))).message).toContain('data format of version 2');
  expect((await failure(changed('empty', [16, 7]))).message).toContain('is not an LMDB database');
  expect((await failure(Buffer.alloc(100))).message).toContain('too few');
});

test('both meta pages must be intact, as liblmdb requires', async () => {
  const second = 4096;
  const cases: [number, number, number, string][] = [
    [second + 16, 0, 4, 'magic number'],
    [second + 20, 9, 4, 'version'],
    [second + 10, 2, 2, 'type'],
    [second + 40, 8192, 4, 'page size'],
    [second + 136, 0, 6, 'last page'],
    [second + 94, 33, 2, 'depth'],
    [second + 94, 0, 2, 'depth'],
    [second + 128, 1, 6, 'root'],
    [second + 120, 0, 6, 'number of entries'],
    [second + 144, 4, 6, 'transaction'],
  ];
  for (const [at, number, bytes, what] of cases) {
    expect((await failure(changed('plain', [at, number, bytes]))).message).toContain(`has a wrong ${what}`);
  }
  expect((await failure(changed('plain', [40, 4095]))).message).toContain('page size of 4095');
});

test('a tree with cycles, or with links outside the file or to the wrong kind of page, throws an error', async () => {
  const plain = fixture('plain');
  // Two transactions were written, the second to meta page 0.
  const root = plain.readUInt32LE(128);
  const at = (page: number, offset: number) => page * 4096 + offset;
  const node = (index: number) => at(root, plain.readUInt16LE(at(root, 16 + 2 * index)));
  const firstLeaf = plain.readUInt32LE(node(0));
  const leafNode = at(firstLeaf, plain.readUInt16LE(at(firstLeaf, 16)));
  const cases: [writes: [number, number, number?][], message: string][] = [
    [[[node(1), firstLeaf]], 'has keys out of order'],
    [[[node(1), root]], 'is not a leaf'],
    [[[node(1), 0]], 'leads to page 0'],
    [[[node(1), 1e6]], 'is not between 2 and'],
    [[[at(firstLeaf, 0), 99]], 'claims to be page 99'],
    [[[at(firstLeaf, 12), 15, 2]], 'wrong bounds'],
    [[[at(firstLeaf, 14), 5000, 2]], 'wrong bounds'],
    [[[at(firstLeaf, 16), 8, 2]], 'overruns it'],
    [[[leafNode + 6, 0xffff, 2]], 'overruns it'],
    [[[leafNode, 0xffffffff]], 'overruns it'],
    [[[leafNode + 4, 8, 2]], 'unknown flags'],
    [[[120, 3, 6]], 'it has more than the 3 entries'],
    [[[120, 999, 6]], 'it has 510 and not the 999 entries'],
  ];
  for (const [writes, message] of cases)
    expect((await failure(changed('plain', ...writes))).message).toContain(message);
  expect((await failure(plain.subarray(0, at(root, 100)))).message).toContain('truncated');
});

test('a large value whose pages are wrong throws an error before memory is allocated for it', async () => {
  const loaded = fixture('loaded');
  const database = await LmdbDatabase.open(memory(loaded));
  const entry = (await database.find('k059'))!;
  expect(entry.inline).toBeNull();
  const run = entry.page * 4096;
  const pageAt = loaded.indexOf(Buffer.concat([Buffer.from('k059'), loaded.subarray(run, run + 8)]));
  const node = pageAt - 8;
  const cases: [writes: [number, number, number?][], message: string][] = [
    [[[run, entry.page + 1]], 'is not the first page of a value'],
    [[[run + 10, 2, 2]], 'is not the first page of a value'],
    [[[run + 12, 0]], 'begins a run of 0 pages instead of 1'],
    [[[node, 0xffffffff]], 'leads to pages'],
    [[[pageAt + 4, 1]], 'leads to pages 1'],
    [[[pageAt + 8, 0xffffffff]], 'leads to pages -1'],
  ];
  for (const [writes, message] of cases)
    expect((await failure(changed('loaded', ...writes))).message).toContain(message);
});
