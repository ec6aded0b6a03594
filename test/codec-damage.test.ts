import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { chooseCodec } from '#reader/codec/select';
import { TIMES } from './repetitions.js';

const child = fileURLToPath(new URL('codec-damage-child.mjs', import.meta.url));
const { name } = await chooseCodec();
/** Other codecs decode whole images, and damaged ones several times, so fewer cases are enough for them. */
const images = (name === 'turbojpeg' ? 4000 : 600) * TIMES;
const CHILDREN = 2;
/** For all cases together, which need a fraction of it. */
const WATCHDOG_MS = 50_000 * TIMES;

interface Outcome {
  readonly pixels: number;
  readonly warnings: number;
  readonly errors: number;
  /** Errors that are not a ShardtoolError. */
  readonly foreign: readonly string[];
  /** Images after which a byte outside the row had changed. */
  readonly spoiled: readonly number[];
}

test(`${images} randomly damaged JPEGs give pixels or a ShardtoolError: no crash, no hang, no stray write`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'shardtool-codec-damage-'));
  try {
    const share = images / CHILDREN;
    const starts = Array.from({ length: CHILDREN }, (_, i) => i * share);
    const outcomes = await Promise.all(starts.map((first) => decodeDamaged(first, share, join(folder, `${first}`))));
    expect(outcomes.flatMap(({ foreign }) => foreign)).toEqual([]);
    expect(outcomes.flatMap(({ spoiled }) => spoiled)).toEqual([]);
    const total = (count: (outcome: Outcome) => number) => outcomes.reduce((sum, outcome) => sum + count(outcome), 0);
    expect(total(({ pixels, errors }) => pixels + errors)).toBe(images);
    // The damage is neither too much nor too little for a useful test.
    for (const count of [total(({ pixels }) => pixels), total(({ errors }) => errors)]) {
      expect(count).toBeGreaterThan(images / 10);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

async function decodeDamaged(first: number, count: number, progress: string): Promise<Outcome> {
  writeFileSync(progress, '');
  const decoder = spawn(process.execPath, [child, `${first}`, `${count}`, progress], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const watchdog = setTimeout(() => decoder.kill('SIGKILL'), WATCHDOG_MS);
  const [output, [code, signal]] = await Promise.all([text(decoder.stdout), once(decoder, 'exit')]);
  clearTimeout(watchdog);
  if (code !== 0)
    throw new Error(`Image ${readFileSync(progress, 'utf8').trim()} ended the process: ${signal ?? code}.`);
  return JSON.parse(output) as Outcome;
}
