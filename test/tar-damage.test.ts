import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';

const child = fileURLToPath(new URL('tar-damage-child.mjs', import.meta.url));
const fixtures = fileURLToPath(new URL('fixtures/tar/', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'shardtool-tar-damage-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Kinds of damage: truncation, flipped bits, a piece moved elsewhere, a repaired checksum. */
interface Damage {
  archive: string;
  cut: number | null;
  flips: { at: number; bit: number }[];
  move: { from: number; to: number; blocks: number } | null;
  repairChecksums: boolean;
}

const archives = readdirSync(fixtures).filter((name) => name.endsWith('.tar'));
const damage: fc.Arbitrary<Damage> = fc.record({
  archive: fc.constantFrom(...archives),
  cut: fc.option(fc.nat({ max: 20_000 })),
  flips: fc.array(fc.record({ at: fc.nat({ max: 20_000 }), bit: fc.nat({ max: 7 }) }), { maxLength: 6 }),
  move: fc.option(fc.record({ from: fc.nat(40), to: fc.nat(40), blocks: fc.nat(8) })),
  repairChecksums: fc.boolean(),
});

function apply(sound: Buffer, { cut, flips, move, repairChecksums }: Damage): Buffer {
  const bytes = Buffer.from(sound);
  for (const { at, bit } of flips) if (at < bytes.length) bytes[at] = bytes[at]! ^ (1 << bit);
  if (move) bytes.copyWithin(move.to * 512, move.from * 512, (move.from + move.blocks) * 512);
  if (repairChecksums) {
    for (let at = 0; at + 512 <= bytes.length; at += 512) {
      if (bytes.toString('latin1', at + 257, at + 262) === 'ustar') repairChecksum(bytes.subarray(at, at + 512));
    }
  }
  return bytes.subarray(0, cut ?? bytes.length);
}

function repairChecksum(block: Buffer): void {
  block.fill(0x20, 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1');
}

test('archives that are truncated, flipped and shuffled at random give samples or a ShardtoolError: no crash, no hang', async () => {
  const sound = new Map(archives.map((name) => [name, readFileSync(join(fixtures, name))]));
  const damages = fc.sample(damage, 1500);
  const paths = damages.map((one, i) => {
    const path = join(folder, `${i}.tar`);
    writeFileSync(path, apply(sound.get(one.archive)!, one));
    return path;
  });
  const walker = fork(child, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(walker, 'exit');
  const outcomes: { path: string; samples: number; trouble: string | null }[] = [];
  let last = '';
  const watchdog = setTimeout(() => walker.kill('SIGKILL'), 40_000);
  walker.on('message', (message) => {
    const outcome = message as (typeof outcomes)[number];
    outcomes.push(outcome);
    last = outcome.path;
  });
  walker.send(paths);
  const [code, signal] = await ended;
  clearTimeout(watchdog);
  const where = `after ${last}: ${JSON.stringify(damages[outcomes.length])}`;
  expect([code, signal], where).toEqual([0, null]);
  expect(outcomes.map(({ path }) => path)).toEqual(paths);
  const foreign = outcomes.filter(({ trouble }) => trouble !== null);
  expect(foreign, JSON.stringify(damages[paths.indexOf(foreign[0]?.path ?? '')])).toEqual([]);
  expect(outcomes.some(({ samples }) => samples > 0)).toBe(true);
});
