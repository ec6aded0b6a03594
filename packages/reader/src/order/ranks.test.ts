import { expect, test } from 'vitest';
import { resolveBatchSize, resolveRanks } from './ranks.js';

const slurm = { SLURM_PROCID: '5', SLURM_NTASKS: '6' };

test('options come before torchrun, torchrun before Slurm, and one process alone is the default', () => {
  const torchrun = { RANK: '1', WORLD_SIZE: '4' };
  expect(resolveRanks({ rank: 2, worldSize: 3 }, { ...torchrun, ...slurm })).toEqual({
    rank: 2,
    worldSize: 3,
    source: 'options',
  });
  expect(resolveRanks({}, { ...torchrun, ...slurm })).toEqual({ rank: 1, worldSize: 4, source: 'RANK and WORLD_SIZE' });
  expect(resolveRanks({}, slurm)).toEqual({ rank: 5, worldSize: 6, source: 'SLURM_PROCID and SLURM_NTASKS' });
  expect(resolveRanks({}, {})).toEqual({ rank: 0, worldSize: 1, source: 'default' });
});

test('one rank of one needs no rank', () => {
  expect(resolveRanks({ worldSize: 1 }, slurm)).toEqual({ rank: 0, worldSize: 1, source: 'options' });
});

test('half a pair is refused, except that Slurm sets one without the other outside of job steps', () => {
  expect(() => resolveRanks({ rank: 1 }, {})).toThrow('rank is given without worldSize');
  expect(() => resolveRanks({ worldSize: 2 }, {})).toThrow('worldSize is given without rank');
  expect(() => resolveRanks({}, { RANK: '1' })).toThrow('RANK is set without WORLD_SIZE');
  expect(() => resolveRanks({}, { WORLD_SIZE: '2', ...slurm })).toThrow('WORLD_SIZE is set without RANK');
  expect(resolveRanks({}, { SLURM_PROCID: '0' }).source).toBe('default');
});

test('a script of sbatch is alone, whatever srun could start in it', () => {
  const job = { SLURM_JOB_ID: '12', SLURM_PROCID: '0', SLURM_NTASKS: '4' };
  expect(resolveRanks({}, job)).toEqual({ rank: 0, worldSize: 1, source: 'default' });
  expect(resolveRanks({}, { ...job, SLURM_STEP_ID: '0' })).toMatchObject({ rank: 0, worldSize: 4 });
});

test('a rank that does not exist is refused', () => {
  expect(() => resolveRanks({ rank: 4, worldSize: 4 }, {})).toThrow('There is no rank 4 of 4');
  expect(() => resolveRanks({}, { RANK: '-1', WORLD_SIZE: '2' })).toThrow('RANK is "-1"');
  expect(() => resolveRanks({}, { RANK: '0', WORLD_SIZE: 'two' })).toThrow('WORLD_SIZE is "two"');
  expect(() => resolveRanks({}, { RANK: '0', WORLD_SIZE: '0' })).toThrow('There is no rank 0 of 0');
});

test('the batch size is given for a rank or for all', () => {
  expect(resolveBatchSize({}, 4)).toEqual({ batchSize: 64, globalBatch: 256 });
  expect(resolveBatchSize({ batchSize: 10 }, 4)).toEqual({ batchSize: 10, globalBatch: 40 });
  expect(resolveBatchSize({ globalBatchSize: 40 }, 4)).toEqual({ batchSize: 10, globalBatch: 40 });
  expect(resolveBatchSize({ batchSize: 10, globalBatchSize: 40 }, 4)).toEqual({ batchSize: 10, globalBatch: 40 });
  expect(() => resolveBatchSize({ globalBatchSize: 42 }, 4)).toThrow('take a multiple of 4');
  expect(() => resolveBatchSize({ batchSize: 11, globalBatchSize: 40 }, 4)).toThrow('gives each of 4 ranks 10 rows');
});
