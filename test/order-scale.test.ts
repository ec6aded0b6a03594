import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Plans 400,000,000 samples in 40,000 shards from `position` up to the first batch, in a separate process. */
function firstBatchInFreshProcess(position: number): { cpuMs: number; rssBytes: number; rows: number } {
  const script = `
    const { planEpoch } = await import('#reader/order/batches');
    const counts = new Float64Array(40_000).fill(10_000);
    const plan = planEpoch({ counts, seed: 42, epoch: 0, streams: 192, blockSamples: 32, globalBatch: 256, position: ${position} });
    const { block } = plan.rows().next().value;
    const blocks = plan.blocks();
    for (let ordinal = 0; ordinal <= Math.max(...block); ordinal++) blocks.next();
    const { user, system } = process.cpuUsage();
    console.log(JSON.stringify({ cpuMs: (user + system) / 1000, rssBytes: process.memoryUsage.rss(), rows: block.length }));
  `;
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8', timeout: 120_000 }),
  );
}

test.each([0, 360_000_000])(
  '400,000,000 samples in 40,000 shards start from position %i within a second, in 200 MB',
  (position) => {
    const { cpuMs, rssBytes, rows } = firstBatchInFreshProcess(position);
    expect(rows).toBe(256);
    expect(cpuMs).toBeLessThan(1000);
    expect(rssBytes).toBeLessThan(200e6);
  },
);
