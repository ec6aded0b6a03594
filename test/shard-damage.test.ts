import { fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lmdb, msgpack, type WrittenLayout } from '@shardtool/format';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';

const child = fileURLToPath(new URL('shard-damage-child.mjs', import.meta.url));
const fixtures = fileURLToPath(new URL('fixtures/lmdb/', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'shardtool-damage-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Kinds of damage: truncation, flipped bits, overwritten numbers, a piece copied elsewhere. */
interface Damage {
  shard: number;
  cut: number | null;
  flips: { at: number; bit: number }[];
  numbers: { at: number; number: number }[];
  move: { from: number; to: number; bytes: number } | null;
}

/** Positions as fractions of the whole, half of them at the beginning: the heads and the meta pages. */
const place = fc.oneof(fc.nat(1_000_000), fc.nat(20_000));
const damage: fc.Arbitrary<Damage> = fc.record({
  shard: fc.nat(),
  cut: fc.option(place, { freq: 4 }),
  flips: fc.array(fc.record({ at: place, bit: fc.nat(7) }), { maxLength: 6 }),
  numbers: fc.array(
    fc.record({ at: place, number: fc.oneof(fc.nat(64), fc.constantFrom(0xffff, 0x7fffffff, 0xffffffff)) }),
    { maxLength: 4 },
  ),
  move: fc.option(fc.record({ from: place, to: place, bytes: fc.constantFrom(2, 8, 100, 4096) })),
});

function apply(sound: Buffer, { cut, flips, numbers, move }: Damage): Buffer {
  const bytes = Buffer.from(sound);
  const at = (part: number) => Math.floor((part / 1_000_001) * bytes.length);
  for (const flip of flips) bytes[at(flip.at)]! ^= 1 << flip.bit;
  for (const one of numbers) {
    // Numbers in pages are at even offsets.
    const even = Math.min(at(one.at) & ~1, bytes.length - 4);
    if (even >= 0) bytes.writeUInt32LE(one.number, even);
  }
  if (move) bytes.copyWithin(at(move.to), at(move.from), at(move.from) + move.bytes);
  return bytes.subarray(0, cut === null ? bytes.length : at(cut));
}

/** A few samples, small and large ones, so that most of the file is structure. */
function write(layout: WrittenLayout, count: number, sizeOf: (i: number) => number): Buffer {
  const path = join(folder, `sound${layout.extension}`);
  const fd = openSync(path, 'w');
  const writer = layout.createWriter(fd, path);
  for (let i = 0; i < count; i++) {
    const fields = [
      { name: 'cls', bytes: 2 },
      { name: 'jpg', bytes: sizeOf(i) },
      { name: 'txt', bytes: 40 },
    ];
    const [cls, image, text] = writer.begin(`folder/sample-${i}`, fields);
    cls!.set(Buffer.from(String(10 + (i % 90))));
    image!.fill(i);
    text!.fill(0x61);
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  return readFileSync(path);
}

const fixture = (name: string) => readFileSync(join(fixtures, `${name}.mdb`));
const sound: Record<'lmdb' | 'msgpack', Buffer[]> = {
  lmdb: [
    write(lmdb, 120, (i) => (i % 9 === 0 ? 5000 : i)),
    write(lmdb, 3, () => 10_000),
    fixture('plain'),
    fixture('deleted'),
    fixture('refused-named'),
  ],
  msgpack: [write(msgpack, 60, (i) => i * 3), write(msgpack, 2, () => 70_000)],
};

for (const layout of ['lmdb', 'msgpack'] as const) {
  test(`random damage of ${layout} shards gives samples or a ShardtoolError: no crash, no hang, no read out of bounds`, async () => {
    const damages = fc.sample(damage, 1000);
    const paths = damages.map((one, i) => {
      const path = join(folder, `${layout}-${i}`);
      writeFileSync(path, apply(sound[layout][one.shard % sound[layout].length]!, one));
      return path;
    });
    const walker = fork(child, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const ended = once(walker, 'exit');
    const outcomes: { path: string; samples: number; trouble: string | null }[] = [];
    const watchdog = setTimeout(() => walker.kill('SIGKILL'), 45_000);
    walker.on('message', (message) => outcomes.push(message as (typeof outcomes)[number]));
    walker.send({ layout, keys: ['folder/sample-7', '00123', 'key-11', 'large-3', 'x'], paths });
    const [code, signal] = await ended;
    clearTimeout(watchdog);
    expect([code, signal], `at ${JSON.stringify(damages[outcomes.length])}`).toEqual([0, null]);
    expect(outcomes.map(({ path }) => path)).toEqual(paths);
    const wrong = outcomes.filter(({ trouble }) => trouble !== null);
    expect(wrong, JSON.stringify(damages[paths.indexOf(wrong[0]?.path ?? '')])).toEqual([]);
    expect(outcomes.some(({ samples }) => samples > 0)).toBe(true);
  });
}
