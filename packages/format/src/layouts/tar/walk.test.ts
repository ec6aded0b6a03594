import {
  DamagedShardError,
  EntryNameError,
  ShardtoolError,
  TruncatedShardError,
  UnsupportedEntryError,
} from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { archive, END, entry, gnuLong, header, pax, record } from '../../../../../test/tar-craft.js';
import { type TarEntry, TarWalk } from './walk.js';

/** Walks `bytes` in windows of the sizes from `next`, but never less than is needed. */
function walk(bytes: Buffer, next: () => number = () => bytes.length): TarEntry[] {
  const core = new TarWalk('a.tar', bytes.length);
  const entries: TarEntry[] = [];
  while (!core.done) {
    const length = Math.min(Math.max(next(), core.needed), bytes.length - core.position);
    const copy = Buffer.alloc(length);
    bytes.copy(copy, 0, core.position);
    core.advance(copy, entries);
  }
  return entries;
}

const names = (bytes: Buffer) => walk(bytes).map(({ name }) => name);

function failure(bytes: Buffer): ShardtoolError {
  try {
    walk(bytes);
  } catch (error) {
    if (error instanceof ShardtoolError) return error;
    throw error;
  }
  throw new Error('it was walked without an error');
}

test('every file has the offsets of its first header and its payload', () => {
  const bytes = archive(entry({ name: 'a.jpg' }, 'x'.repeat(600)), pax(record('path', 'b.jpg')), entry({}, 'yy'));
  expect(walk(bytes)).toEqual([
    { name: 'a.jpg', start: 0, offset: 512, bytes: 600 },
    { name: 'b.jpg', start: 1536, offset: 3072, bytes: 2 },
  ]);
});

test('pax records override the header, local records override global ones, and an empty path cancels a global one', () => {
  const bytes = archive(
    pax(record('path', 'global.jpg') + record('size', '3'), 'g'),
    entry({ name: 'a.jpg', size: 0 }, 'abc'),
    pax(record('path', 'local.jpg') + record('size', '2')),
    entry({ name: 'a.jpg', size: 0 }, 'ab'),
    pax(record('path', '')),
    entry({ name: 'b.jpg' }, 'abc'),
    entry({ name: 'c.jpg' }, 'abc'),
  );
  expect(walk(bytes).map(({ name, bytes: size }) => [name, size])).toEqual([
    ['global.jpg', 3],
    ['local.jpg', 2],
    ['b.jpg', 3],
    ['global.jpg', 3],
  ]);
});

test('a GNU long name applies only to the next entry, and a long link name to no file', () => {
  const long = `${'n'.repeat(300)}.jpg`;
  const bytes = archive(
    gnuLong('t'.repeat(200), 'K'),
    gnuLong(long),
    entry({ magic: 'gnu' }, 'x'),
    entry({ name: 'b.jpg' }),
  );
  expect(names(bytes)).toEqual([long, 'b.jpg']);
  expect(walk(bytes)[0]!.start).toBe(0);
});

test('a name that is cut within a character is an error unless a long name or a pax path has the full name', () => {
  const name = `c/${'図'.repeat(40)}.jpg`;
  const cut = Buffer.from(name).subarray(0, 100);
  expect(cut.toString()).toContain('\ufffd');
  const cutEntry = entry({ name: cut, prefix: Buffer.from('p/図').subarray(0, 4) }, 'x');
  expect(names(archive(gnuLong(name), entry({ name: cut, magic: 'gnu' }, 'x'), entry({ name: 'b.jpg' })))).toEqual([
    name,
    'b.jpg',
  ]);
  expect(names(archive(pax(record('path', name)), cutEntry))).toEqual([name]);
  expect(names(archive(pax(record('path', name), 'g'), cutEntry))).toEqual([name]);
  for (const bytes of [
    archive(cutEntry),
    archive(pax(record('mtime', '1')), cutEntry),
    archive(gnuLong('l', 'K'), cutEntry),
  ]) {
    expect(failure(bytes)).toBeInstanceOf(EntryNameError);
    expect(failure(bytes).message).toContain('is not UTF-8');
  }
});

test('a long name ends at its NUL, and text after the NUL is an error that says so', () => {
  const long = (text: string) => entry({ name: '././@LongLink', type: 'L', magic: 'gnu' }, text);
  expect(names(archive(long('a.jpg\0\0\0'), entry({}, 'x')))).toEqual(['a.jpg']);
  expect(names(archive(long('a.jpg'), entry({}, 'x')))).toEqual(['a.jpg']);
  const error = failure(archive(long('a.jpg\0b'), entry({}, 'x')));
  expect(error).toBeInstanceOf(EntryNameError);
  expect(error.message).toContain('the name in the record at byte 0 contains a NUL');
});

test('folders and volume labels are skipped, also old-style folders, which are files with a trailing slash', () => {
  const bytes = archive(
    entry({ name: 'a label', type: 'V', magic: 'gnu' }),
    header({ name: 'a/', type: '5', size: 4096 }),
    entry({ name: 'b/', type: '\0', magic: 'v7' }),
    entry({ name: 'b/', type: 'D', magic: 'gnu' }, 'Yc.jpg\0\0'),
    entry({ name: 'b/c.jpg' }),
  );
  expect(names(bytes)).toEqual(['b/c.jpg']);
});

test.each([
  ['a character device', '3'],
  ['a block device', '4'],
  ['a FIFO', '6'],
  ['a sparse file', 'S'],
  ['the rest of a file from another volume', 'M'],
  ['of the unknown type "Q"', 'Q'],
])('the error for %s names it and its offset', (kind, type) => {
  const error = failure(archive(entry({ name: 'a.jpg' }, 'x'), header({ name: 'b.jpg', type, linkName: 'a.jpg' })));
  expect(error).toBeInstanceOf(UnsupportedEntryError);
  expect(error).toMatchObject({ shard: 'a.tar', offset: 1024, path: 'b.jpg' });
  expect(error.message).toContain(kind);
});

test('a link has its target from its header, a long link name or a pax record, and has no payload', () => {
  const long = `d/${'t'.repeat(200)}.jpg`;
  const bytes = archive(
    entry({ name: 'a.jpg' }, 'x'),
    header({ name: 'hard.jpg', type: '1', linkName: 'a.jpg', size: 4096 }),
    header({ name: 'd/soft.jpg', type: '2', linkName: '../a.jpg' }),
    gnuLong(long, 'K'),
    header({ name: 'long.jpg', type: '2', linkName: long.slice(0, 100), magic: 'gnu' }),
    pax(record('linkpath', 'd/ü.jpg')),
    header({ name: 'pax.jpg', type: '1', linkName: 'd/_.jpg' }),
    entry({ name: 'b.jpg' }, 'y'),
  );
  expect(walk(bytes).map(({ name, bytes: size, link }) => [name, size, link?.target, link?.isSymbolic])).toEqual([
    ['a.jpg', 1, undefined, undefined],
    ['hard.jpg', 0, 'a.jpg', false],
    ['d/soft.jpg', 0, '../a.jpg', true],
    ['long.jpg', 0, long, true],
    ['pax.jpg', 0, 'd/ü.jpg', false],
    ['b.jpg', 1, undefined, undefined],
  ]);
});

test('a hard link with a payload, which pax allows, is a file', () => {
  const bytes = archive(pax(record('mtime', '1')), entry({ name: 'hard.jpg', type: '1', linkName: 'a.jpg' }, 'abc'));
  expect(walk(bytes)).toEqual([{ name: 'hard.jpg', start: 0, offset: 1536, bytes: 3 }]);
});

test('a sparse file in pax records is rejected', () => {
  for (const type of ['x', 'g'] as const) {
    const error = failure(archive(pax(record('GNU.sparse.major', '1'), type), entry({}, 'x')));
    expect(error).toBeInstanceOf(UnsupportedEntryError);
    expect(error.message).toContain('a sparse file');
    expect(error.message).toContain('write the archive again without the option -S of tar');
  }
});

test.each(['/etc/a.jpg', '../a.jpg', 'a/../../b.jpg', 'a/..', ''])(
  'the name %j is rejected, in any kind of record',
  (name) => {
    const places = [entry({ name }, 'x'), Buffer.concat([gnuLong(name), entry({ name }, 'x')])];
    if (name !== '') places.push(Buffer.concat([pax(record('path', name)), entry({}, 'x')]));
    for (const bad of places) {
      const error = failure(archive(entry({ name: 'ok.jpg' }), bad));
      expect(error).toBeInstanceOf(EntryNameError);
      expect(error.shard).toBe('a.tar');
      expect(error.offset).toBeGreaterThanOrEqual(512);
    }
  },
);

test('a size beyond the end of the file throws an error that names file, size and available bytes', () => {
  const error = failure(archive(entry({ name: 'big.jpg', size: 1_000_000 }, 'x')));
  expect(error).toBeInstanceOf(TruncatedShardError);
  expect(error).toMatchObject({ offset: 0, path: 'big.jpg' });
  expect(error.message).toContain('1000000 bytes long, but the shard ends after 1536');
  const huge = entry({ sizeField: Uint8Array.of(0x80, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, 'x');
  expect(failure(archive(huge))).toBeInstanceOf(TruncatedShardError);
  expect(failure(archive(pax(record('size', '99999999999999999999')), entry({}, 'x')))).toBeInstanceOf(
    TruncatedShardError,
  );
});

test('records of more than 1 MiB, and records that no file follows, throw errors', () => {
  expect(failure(archive(header({ type: 'x', size: 2 ** 21 }), Buffer.alloc(2 ** 21)))).toMatchObject({ offset: 0 });
  const dangling = failure(archive(entry({}, 'x'), pax(record('path', 'b.jpg'))));
  expect(dangling).toBeInstanceOf(DamagedShardError);
  expect(dangling).toMatchObject({ offset: 1024 });
});

test('an archive that is truncated before its final zeros throws an error, and truncated zeros do not matter', () => {
  const whole = archive(pax(record('path', 'c/a.jpg')), entry({}, 'x'.repeat(700)), gnuLong('b.jpg'), entry({}, 'yy'));
  const zeros = whole.length - END.length;
  for (let length = 0; length < zeros + 512; length++) {
    const error = failure(whole.subarray(0, length));
    expect(error, String(length)).toBeInstanceOf(TruncatedShardError);
    expect(error.offset).toBeLessThanOrEqual(length);
  }
  for (let length = zeros + 512; length <= whole.length; length++) {
    expect(names(whole.subarray(0, length))).toEqual(['c/a.jpg', 'b.jpg']);
  }
});

test('zeros after the end are padding, and anything else is an error, because a second archive would be lost', () => {
  const one = archive(entry({}, 'x'));
  expect(names(Buffer.concat([one, Buffer.alloc(9000)]))).toEqual(['a.jpg']);
  const error = failure(Buffer.concat([one, archive(entry({ name: 'b.jpg' }))]));
  expect(error).toBeInstanceOf(DamagedShardError);
  expect(error.offset).toBe(one.length);
});

test('an archive may have no files; an empty file and a file that is not an archive throw errors', () => {
  expect(names(archive())).toEqual([]);
  expect(failure(Buffer.alloc(0))).toBeInstanceOf(TruncatedShardError);
  expect(failure(Buffer.alloc(5000, 'no tar'))).toMatchObject({ offset: 0 });
});

const piece = fc.oneof(
  fc
    .record({ name: fc.stringMatching(/^[a-z]{1,40}\.[a-z]{1,4}$/), size: fc.nat({ max: 3000 }) })
    .map(({ name, size }) => entry({ name }, Buffer.alloc(size, 0x61))),
  fc.stringMatching(/^[a-zé]{1,900}$/).map((name) => Buffer.concat([pax(record('path', name)), entry({}, 'pax')])),
  fc.stringMatching(/^[a-zé]{1,900}$/).map((name) => Buffer.concat([gnuLong(name), entry({ magic: 'gnu' }, 'gnu')])),
  fc.constant(header({ name: 'folder/', type: '5' })),
);

test('the result does not depend on how the archive is split into windows', () => {
  const sizes = fc.array(fc.nat({ max: 5000 }), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), sizes, (pieces, windows) => {
      const bytes = archive(...pieces);
      let i = 0;
      expect(walk(bytes, () => windows[i++ % windows.length]!)).toEqual(walk(bytes));
    }),
  );
});

test('files before the first damage are returned', () => {
  const bytes = archive(entry({ name: 'a.jpg' }), entry({ name: 'b.jpg' }), header({ checksumField: '1' }));
  const core = new TarWalk('a.tar', bytes.length);
  const entries: TarEntry[] = [];
  expect(() => core.advance(bytes, entries)).toThrowError(DamagedShardError);
  expect(entries.map(({ name }) => name)).toEqual(['a.jpg', 'b.jpg']);
});
