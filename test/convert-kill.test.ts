import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { convert, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { smallImages } from './datasets.js';
import { digestsOf, newFolder } from './pack-workbench.js';

const source = newFolder();
await pack(await smallImages({ samples: 400 }), source, { maxShardSamples: 10 });

/** Converts in a separate process, kills it as soon as `isTime` returns true, and returns whether it was killed. */
async function killedConvert(output: string, isTime: () => boolean): Promise<boolean> {
  const script = `import { convert } from '@shardtool/writer';
    await convert(${JSON.stringify(source)}, ${JSON.stringify(output)}, { format: 'lmdb', workers: 1 });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
  const ended = new Promise<boolean>((resolve) => child.on('exit', (code) => resolve(code === null)));
  const looking = setInterval(() => {
    if (isTime()) child.kill('SIGKILL');
  }, 1);
  const killed = await ended;
  clearInterval(looking);
  return killed;
}

test('a killed conversion resumes, and the result is byte-for-byte identical to an uninterrupted one', {
  timeout: 120_000,
}, async () => {
  const alone = newFolder();
  await convert(source, alone, { format: 'lmdb' });
  let output = newFolder();
  let isKilled = false;
  // On a busy machine a conversion may end before `isTime` is checked: then another one is started.
  for (let tries = 0; !isKilled && tries < 20; tries++) {
    output = newFolder();
    const hasShard = (stem: string) => existsSync(path.join(output, 'pack.state', `${stem}.json`));
    isKilled = await killedConvert(output, () => hasShard('000000'));
    // Once more, at a later point.
    if (isKilled) isKilled = await killedConvert(output, () => hasShard('000007'));
  }
  expect(isKilled).toBe(true);
  expect(existsSync(path.join(output, 'dataset.json'))).toBe(false);
  expect(await convert(source, output, { format: 'lmdb' })).toMatchObject({ samples: 400, wasCommitted: false });
  expect(digestsOf(output)).toEqual(digestsOf(alone));
});
