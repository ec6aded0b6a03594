import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Device } from '@shardtool/cuda';
import { describe, expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { simulatedDriver } from './simulated-driver.js';

const program = path.resolve('bench/gpu/run.mjs');

function bench(driver: string, ...args: string[]) {
  const env = { ...process.env, SHARDTOOL_CUDA_DRIVER: driver };
  return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', env, timeout: 120_000 });
}

test('without a driver bench:gpu measures nothing, reports that, and exits with status 2', () => {
  const { status, stdout, stderr } = bench('/nowhere/libcuda.so.1');
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^Nothing was measured: Found no CUDA driver \(.*\): install .*\.\n$/);
});

const simulation = simulatedDriver();

describe.runIf(simulation !== null)('with the simulated driver', () => {
  interface Report {
    readonly device: string;
    readonly slots: string;
    readonly figures: readonly { what: string; shardtool: number | null; torch: number | null }[];
    readonly failures: readonly string[];
  }

  test('bench:gpu runs to its end, says that the driver is simulated, and prints no figure', () => {
    const work = emptyFolder();
    cpSync('examples/photos', path.join(work, 'photos-60'), { recursive: true });
    writeFileSync(path.join(work, 'photos-60.json'), JSON.stringify({ count: 60, copies: false }));
    const out = path.join(work, 'report.json');
    const sizes = ['--photos', '60', '--batch-size', '4', '--batches', '8', '--seconds', '0'];
    const { stdout, stderr } = bench(process.env.SHARDTOOL_CUDA_DRIVER!, ...sizes, '--work', work, '--out', out);
    expect(stdout, stderr).toMatch(
      /^The driver is simulated: the figures do not mean anything\.\n\nsimulated device 0, /,
    );
    const { device, slots, figures, failures } = JSON.parse(readFileSync(out, 'utf8')) as Report;
    expect([device, slots]).toEqual(['simulated device 0, compute capability 5.0', 'slots']);
    expect(figures.map(({ shardtool, torch }) => [shardtool, torch])).toEqual(new Array(6).fill([null, null]));
    // If python3 has no torch, or torch no CUDA, only that may be missing.
    expect(failures.filter((failure) => !failure.startsWith('torch: '))).toEqual([]);
  });

  test('the reported share of copies that overlap with the kernel agrees with the clock of the simulated driver', async () => {
    interface Overlap {
      measureOverlap(
        device: Device,
        sizes: { batchSize: number; batches: number },
      ): Promise<{ share: number; batchMs: number; kernelMs: number }>;
    }
    const module: string = path.resolve('bench/gpu/overlap.mjs');
    const { measureOverlap } = (await import(module)) as Overlap;
    simulation!.reset();
    const device = await Device.open(0);
    const { share, batchMs, kernelMs } = await measureOverlap(device, { batchSize: 4, batches: 12 });
    device.close();
    expect(simulation!.failure()).toBe('');
    expect(simulation!.living()).toBe(0);
    // There, a copy of 4 x 224 x 224 x 3 bytes takes 0.1 ms per megabyte, and the kernel takes the time that it is given.
    expect(batchMs).toBeCloseTo(0.0602, 3);
    expect(kernelMs).toBeCloseTo(30, 3);
    expect(share).toBeCloseTo(1, 3);
  });
});
