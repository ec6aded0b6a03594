import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type PackOptions, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { smallImages } from './datasets.js';
import { startPack } from './pack-processes.js';
import { digestsOf, newFolder } from './pack-workbench.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const random = randomOf('kills of a pack');

/** Total number of packs that are killed. */
const KILLS = 5 * TIMES;
/** A pack that has been killed this often may end. */
const KILLS_A_PACK = 4;

const KINDS: readonly PackOptions[] = [
  { format: 'tar', index: ['wids', 'dali'] },
  { format: 'lmdb' },
  { format: 'msgpack' },
  { format: 'tar', resize: 16 },
];

test('a pack that is killed repeatedly, at any moment, resumes to the same bytes as an uninterrupted one', {
  timeout: 180_000 + KILLS * 5000,
}, async () => {
  const source = await smallImages({ samples: 120, classes: 3, bytes: (sample) => 2000 + sample * 100 });
  let kills = 0;
  for (let round = 0; kills < KILLS; round++) {
    const options = { ...KINDS[round % KINDS.length], maxShardSamples: 4, workers: 3 };
    const alone = newFolder();
    const begun = performance.now();
    await startPack(source, alone, options).ended;
    const wholeMs = performance.now() - begun;
    const expected = digestsOf(alone);
    const output = newFolder();
    for (let killed = 0; ; killed++) {
      const { process, ended } = startPack(source, output, options);
      if (killed < KILLS_A_PACK && kills < KILLS) {
        const moment = random() * wholeMs;
        await sleep(moment);
        if (process.kill('SIGKILL')) kills++;
      }
      const { code, stdout } = await ended;
      if (code === null) continue;
      // The kill may have been between the commit and the end of the process.
      expect(code, stdout).toBe(0);
      break;
    }
    expect(digestsOf(output)).toEqual(expected);
  }
});

test('a pack that is killed right after its commit leaves a dataset, and the next pack removes leftover files', async () => {
  const source = await smallImages({ samples: 8 });
  const output = newFolder();
  await pack(source, output, { workers: 1 });
  const expected = digestsOf(output);
  const killed = newFolder();
  const child = startPack(source, killed, { workers: 1 });
  while (!existsSync(path.join(killed, 'dataset.json'))) await sleep(1);
  child.process.kill('SIGKILL');
  await child.ended;
  expect(await pack(source, killed)).toMatchObject({ wasCommitted: true, samples: 8, keptShards: 1 });
  expect(digestsOf(killed)).toEqual(expected);
});
