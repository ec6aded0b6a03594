// Opening a dataset of 10,000 shards (a manifest without files), in a process of its own.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createManifest, writeManifest } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { cost } from './figures.mjs';

const [, , folder] = process.argv;
if (folder !== undefined) {
  const start = performance.now();
  const dataset = await openDataset(folder);
  const ms = performance.now() - start;
  cost('10,000 shards, ms', ms);
  console.log(`${ms.toFixed(0)} ms for ${dataset.shards.length} shards, ${dataset.size} samples`);
} else {
  const made = mkdtempSync(path.join(tmpdir(), 'shardtool-open-'));
  const shards = Array.from({ length: 10_000 }, (_, shard) => ({
    file: `${String(shard).padStart(6, '0')}.tar`,
    bytes: 268_435_456,
    samples: 5000,
    crc32: ((shard * 2654435761) % 2 ** 32).toString(16).padStart(8, '0'),
    maxSampleBytes: 900_000,
  }));
  await writeManifest(
    made,
    createManifest({ format: 'tar', classes: [], fields: [{ name: 'jpg', samples: 5e7 }], columns: [], shards }),
  );
  // Each writes a figure of the same name where figures are asked for, of which there can be one.
  const rounds = process.env.SHARDTOOL_FIGURES === undefined ? 5 : 1;
  for (let round = 0; round < rounds; round++)
    spawnSync(process.execPath, [process.argv[1], made], { stdio: 'inherit' });
  rmSync(made, { recursive: true });
}
