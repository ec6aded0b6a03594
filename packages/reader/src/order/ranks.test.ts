import { expect, test } from 'vitest';
import { type Ranks, resolveBatchSize, resolveRanks } from './ranks.js';

const slurm = { SLURM_PROCID: '5', SLURM_NTASKS: '6' };

const torch = (rank: number, worldSize: number) => ({ rank, worldSize, source: 'torch.distributed' });
const jax = (rank: number, worldSize: number) => ({ rank, worldSize, source: 'jax.distributed' });

function ranksIn(environment: Record<string, string>, ...frameworks: Ranks[]) {
  return resolveRanks({}, { environment, frameworks });
}

test('options take precedence, then torch.distributed or jax.distributed, torchrun, Lightning and Slurm; the default is a single process', () => {
  const torchrun = { RANK: '1', WORLD_SIZE: '6' };
  const lightning = { LOCAL_RANK: '2', NODE_RANK: '0', WORLD_SIZE: '6' };
  expect(
    resolveRanks({ rank: 2, worldSize: 3 }, { environment: { ...torchrun, ...slurm }, frameworks: [torch(0, 9)] }),
  ).toEqual({
    rank: 2,
    worldSize: 3,
    source: 'options',
  });
  expect(ranksIn({}, torch(3, 4))).toEqual(torch(3, 4));
  expect(ranksIn(torchrun, jax(1, 6))).toEqual(jax(1, 6));
  expect(ranksIn(torchrun, torch(1, 6)).source).toBe('torch.distributed');
  expect(ranksIn(torchrun)).toEqual({ rank: 1, worldSize: 6, source: 'RANK and WORLD_SIZE' });
  expect(ranksIn(lightning)).toEqual({ rank: 2, worldSize: 6, source: 'LOCAL_RANK and WORLD_SIZE' });
  expect(ranksIn(slurm)).toEqual({ rank: 5, worldSize: 6, source: 'SLURM_PROCID and SLURM_NTASKS' });
  expect(ranksIn({})).toEqual({ rank: 0, worldSize: 1, source: 'default' });
});

test('with a worldSize of 1, rank may be omitted', () => {
  expect(resolveRanks({ worldSize: 1 }, { environment: slurm })).toEqual({ rank: 0, worldSize: 1, source: 'options' });
});

test('the error for two sources that disagree names both with their values', () => {
  expect(() => ranksIn({ RANK: '1', WORLD_SIZE: '4' }, torch(0, 4))).toThrow(
    'torch.distributed says that this is rank 0 of 4, but RANK and WORLD_SIZE say that it is rank 1 of 4: pass rank and worldSize',
  );
  expect(() => ranksIn({ WORLD_SIZE: '4' }, torch(0, 2))).toThrow('but WORLD_SIZE says that it is one of 4 ranks');
  expect(() => ranksIn({ RANK: '1' }, torch(0, 2))).toThrow('but RANK says that it is rank 1');
  expect(() => ranksIn({ LOCAL_RANK: '1', WORLD_SIZE: '2' }, torch(0, 2))).toThrow('LOCAL_RANK and WORLD_SIZE say');
  expect(() => ranksIn({ RANK: '0', WORLD_SIZE: '1', ...slurm })).toThrow(
    'RANK and WORLD_SIZE say that this is rank 0 of 1, but SLURM_PROCID and SLURM_NTASKS say that it is rank 5 of 6',
  );
  expect(() => ranksIn({ RANK: '1', WORLD_SIZE: '6', ...slurm })).toThrow('rank 5 of 6');
  expect(() => ranksIn({}, torch(1, 4), jax(0, 4))).toThrow(
    'torch.distributed says that this is rank 1 of 4, but jax.distributed says that it is rank 0 of 4',
  );
  expect(() => ranksIn(slurm, torch(1, 4))).toThrow('torch.distributed says that this is rank 1 of 4');
});

test('a Slurm task may start several ranks, and torchrun may number its nodes in another order', () => {
  const torchrun = { RANK: '9', WORLD_SIZE: '12', TORCHELASTIC_RUN_ID: 'none' };
  expect(ranksIn({ ...torchrun, ...slurm })).toMatchObject({ rank: 9, worldSize: 12 });
  expect(ranksIn(slurm, torch(11, 12))).toMatchObject({ rank: 11, worldSize: 12 });
  expect(ranksIn({ ...torchrun, RANK: '1', WORLD_SIZE: '6', ...slurm })).toMatchObject({ rank: 1, worldSize: 6 });
});

test('half of a pair is rejected, except that Slurm sets one without the other outside of job steps', () => {
  expect(() => resolveRanks({ rank: 1 }, { environment: {} })).toThrow('rank is set without worldSize');
  expect(() => resolveRanks({ worldSize: 2 }, { environment: {} })).toThrow('worldSize is set without rank');
  expect(() => ranksIn({ RANK: '1' })).toThrow('RANK is set without WORLD_SIZE');
  expect(() => ranksIn({ WORLD_SIZE: '2', ...slurm })).toThrow('WORLD_SIZE is set without RANK');
  expect(ranksIn({ WORLD_SIZE: '2' }, torch(0, 2))).toMatchObject({ rank: 0, worldSize: 2 });
  expect(ranksIn({ SLURM_PROCID: '0' }).source).toBe('default');
});

test('Lightning numbers the processes of each node, so later nodes need to know how many a node has', () => {
  const second = { LOCAL_RANK: '1', NODE_RANK: '1', WORLD_SIZE: '4' };
  expect(() => ranksIn(second)).toThrow('NODE_RANK is 1, but without RANK or LOCAL_WORLD_SIZE');
  expect(ranksIn({ ...second, LOCAL_WORLD_SIZE: '2' })).toMatchObject({ rank: 3, worldSize: 4 });
  expect(ranksIn(second, torch(3, 4))).toMatchObject({ rank: 3, worldSize: 4 });
  expect(ranksIn({ LOCAL_RANK: '0', NODE_RANK: '0' }).source).toBe('default');
  expect(() => ranksIn({ LOCAL_RANK: '1' })).toThrow('LOCAL_RANK is 1, but neither RANK nor WORLD_SIZE is set');
  expect(ranksIn({ LOCAL_RANK: '1', ...slurm })).toMatchObject({ rank: 5, worldSize: 6 });
});

test('a batch script and an interactive shell of Slurm are single processes, whatever srun could start from them', () => {
  const job = { SLURM_JOB_ID: '12', SLURM_PROCID: '0', SLURM_NTASKS: '4' };
  expect(ranksIn(job)).toEqual({ rank: 0, worldSize: 1, source: 'default' });
  expect(ranksIn({ ...job, SLURM_STEP_ID: '0' })).toMatchObject({ rank: 0, worldSize: 4 });
  expect(ranksIn({ ...job, SLURM_STEP_ID: '4294967290' }).source).toBe('default');
  for (const SLURM_JOB_NAME of ['bash', 'interactive']) {
    const shell = { ...job, SLURM_STEP_ID: '0', SLURM_JOB_NAME };
    expect(ranksIn(shell)).toEqual({ rank: 0, worldSize: 1, source: 'default' });
    expect(() => ranksIn({ ...shell, SLURM_PROCID: '2' })).toThrow(`SLURM_JOB_NAME is "${SLURM_JOB_NAME}"`);
    expect(ranksIn({ ...shell, SLURM_PROCID: '2' }, torch(2, 4))).toMatchObject({ rank: 2, worldSize: 4 });
  }
});

test('a rank that does not exist is rejected', () => {
  expect(() => resolveRanks({ rank: 4, worldSize: 4 }, { environment: {} })).toThrow('Invalid rank 4 of 4');
  expect(() => ranksIn({ RANK: '-1', WORLD_SIZE: '2' })).toThrow('RANK is "-1"');
  expect(() => ranksIn({ RANK: '0', WORLD_SIZE: 'two' })).toThrow('WORLD_SIZE is "two"');
  expect(() => ranksIn({ RANK: '0', WORLD_SIZE: '0' })).toThrow('Invalid rank 0 of 0');
});

test('the batch size can be given per rank or for all ranks', () => {
  expect(resolveBatchSize({}, 4)).toEqual({ batchSize: 64, globalBatch: 256 });
  expect(resolveBatchSize({ batchSize: 10 }, 4)).toEqual({ batchSize: 10, globalBatch: 40 });
  expect(resolveBatchSize({ globalBatchSize: 40 }, 4)).toEqual({ batchSize: 10, globalBatch: 40 });
  expect(resolveBatchSize({ batchSize: 10, globalBatchSize: 40 }, 4)).toEqual({ batchSize: 10, globalBatch: 40 });
  expect(() => resolveBatchSize({ globalBatchSize: 42 }, 4)).toThrow('set a multiple of 4');
  expect(() => resolveBatchSize({ batchSize: 11, globalBatchSize: 40 }, 4)).toThrow('gives each of 4 ranks 10 rows');
});
