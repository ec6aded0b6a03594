import { OptionError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { isLockFile, partLock } from './output/parts.js';
import {
  autoPart,
  isTurnOf,
  OPEN,
  parsePart,
  partOf,
  partOfEnvironment,
  type WriterPartOption,
  writerPartOf,
} from './part.js';

test('a part is written as its number, starting at 1, and the total', () => {
  expect(parsePart('3/16')).toEqual({ index: 2, of: 16 });
  expect(parsePart('1/1')).toEqual({ index: 0, of: 1 });
  expect(parsePart('auto')).toBe('auto');
  for (const wrong of ['0/16', '17/16', '3', '3/', '/16', '-1/4', '1.5/4', '3 / 16', '']) {
    expect(() => parsePart(wrong), wrong).toThrow(OptionError);
  }
});

test('each shard belongs to exactly one part', () => {
  for (let shard = 0; shard < 20; shard++) {
    const takers = [1, 2, 3].filter((number) => isTurnOf({ number, count: 3 }, shard));
    expect(takers).toEqual([(shard % 3) + 1]);
  }
});

function found(env: NodeJS.ProcessEnv): string | undefined {
  const part = partOfEnvironment(env)?.part;
  return part && `${part.index + 1}/${part.of}`;
}

test('a Slurm job array may start at any index and have steps', () => {
  const array = (id: number, count: number, min: number, step?: number) =>
    found({
      ...{ SLURM_ARRAY_TASK_ID: `${id}`, SLURM_ARRAY_TASK_COUNT: `${count}`, SLURM_ARRAY_TASK_MIN: `${min}` },
      ...(step !== undefined && { SLURM_ARRAY_TASK_STEP: `${step}` }),
    });
  expect(array(0, 16, 0)).toBe('1/16');
  expect(array(15, 16, 0)).toBe('16/16');
  expect(array(1, 16, 1)).toBe('1/16');
  expect(array(14, 4, 10, 2)).toBe('3/4');
  expect(() => array(7, 3, 1)).toThrow(
    'set it, for example part: { index: 2, of: 16 }, or part: { index: 0, of: 1 } to pack everything here',
  );
});

test('an Indexed Job of Kubernetes counts from 0, and without either kind of job there is no part', () => {
  expect(found({ JOB_COMPLETION_INDEX: '0', JOB_COMPLETIONS: '8' })).toBe('1/8');
  expect(found({ JOB_COMPLETION_INDEX: '7', JOB_COMPLETIONS: '8' })).toBe('8/8');
  expect(found({ JOB_COMPLETIONS: '8', SLURM_ARRAY_TASK_COUNT: '8' })).toBeUndefined();
  expect(found({})).toBeUndefined();
  expect(() => found({ JOB_COMPLETION_INDEX: '8', JOB_COMPLETIONS: '8' })).toThrow(OptionError);
});

test('a job process without the total number of processes is rejected, because each process would pack everything', () => {
  for (const env of [{ JOB_COMPLETION_INDEX: '3' }, { JOB_COMPLETION_INDEX: '3', JOB_COMPLETIONS: '' }]) {
    expect(() => found(env)).toThrow(
      'JOB_COMPLETION_INDEX=3 means that this is one of several processes, but JOB_COMPLETIONS is not set',
    );
  }
  expect(() => found({ SLURM_ARRAY_TASK_ID: '3' })).toThrow('SLURM_ARRAY_TASK_COUNT is not set');
});

test.each([
  ['Slurm job array', 'SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT'],
  ['Kubernetes Indexed Job', 'JOB_COMPLETION_INDEX and JOB_COMPLETIONS'],
  ['AWS Batch array job', 'AWS_BATCH_JOB_ARRAY_INDEX and AWS_BATCH_JOB_ARRAY_SIZE'],
  ['Cloud Run job', 'CLOUD_RUN_TASK_INDEX and CLOUD_RUN_TASK_COUNT'],
  ['SkyPilot nodes', 'SKYPILOT_NODE_RANK and SKYPILOT_NUM_NODES'],
  ['Open MPI', 'OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE'],
  ['PMI of MPICH and Intel MPI', 'PMI_RANK and PMI_SIZE'],
  ['torchrun', 'RANK and WORLD_SIZE'],
])('part "auto" finds the part of each process in a job: %s', (_, variables) => {
  const [index = '', count = ''] = variables.split(' and ');
  const partsOf = (of: number) =>
    Array.from({ length: of }, (_, at) => autoPart({ [index]: `${at}`, [count]: `${of}` }).part);
  expect(partsOf(3)).toEqual([0, 1, 2].map((at) => ({ index: at, of: 3 })));
  expect(partsOf(1)).toEqual([{ index: 0, of: 1 }]);
  expect(autoPart({ [index]: '1', [count]: '3' }).variables).toBe(variables);
  expect(() => autoPart({ [index]: '1' })).toThrow(`but ${count} is not set`);
  for (const [at, of] of [
    ['3', '3'],
    ['-1', '3'],
    ['0', '0'],
    ['one', '3'],
    ['1', 'three'],
    ['0.5', '3'],
  ]) {
    expect(() => autoPart({ [index]: at, [count]: of }), `${at} of ${of}`).toThrow('do not define a part');
  }
});

test('part "auto" without a job is an error, because each process would pack everything', () => {
  expect(() => autoPart({ WORLD_SIZE: '4' })).toThrow('no environment variable defines a part');
});

test('part "auto" rejects two schedulers that define different parts, and ignores a launcher of one process', () => {
  const array = { SLURM_ARRAY_TASK_ID: '2', SLURM_ARRAY_TASK_COUNT: '4' };
  expect(autoPart({ ...array, RANK: '0', WORLD_SIZE: '1' }).part).toEqual({ index: 2, of: 4 });
  expect(autoPart({ ...array, RANK: '2', WORLD_SIZE: '4' }).part).toEqual({ index: 2, of: 4 });
  expect(() => autoPart({ ...array, PMI_RANK: '0', PMI_SIZE: '2' })).toThrow(
    'but SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT define part 3/4, and PMI_RANK and PMI_SIZE define part 1/2',
  );
});

test('without the option, only job arrays and Indexed Jobs define a part', () => {
  expect(found({ RANK: '1', WORLD_SIZE: '4', AWS_BATCH_JOB_ARRAY_INDEX: '1' })).toBeUndefined();
});

const env = { RANK: '1', WORLD_SIZE: '2' };

test('a part is an index from 0 and a count, or "auto"', () => {
  expect(partOf({ index: 2, of: 16 }, env)).toEqual({ number: 3, count: 16 });
  expect(partOf('auto', env)).toEqual({ number: 2, count: 2 });
  expect(partOf({ index: 0, of: 1 }, env)).toBeNull();
  expect(partOf(undefined, env)).toBeNull();
  expect(writerPartOf({ index: 6 }, env)).toEqual({ number: 7, count: OPEN });
  expect(writerPartOf('auto', env)).toEqual({ number: 2, count: 2 });
});

test.each([
  [{ index: 16, of: 16 }, '{ index: 16, of: 16 }'],
  [{ index: -1, of: 16 }, '{ index: -1, of: 16 }'],
  [{ index: 0.5, of: 2 }, '{ index: 0.5, of: 2 }'],
  [{ index: 0, of: 0 }, '{ index: 0, of: 0 }'],
  [{ index: 0, of: Number.NaN }, '{ index: 0, of: NaN }'],
  [{ index: 0, of: 2, at: 1 }, '{ index: 0, of: 2, at: 1 }'],
  [{ index: '0', of: 2 }, '{ index: "0", of: 2 }'],
  [{ of: 2 }, '{ of: 2 }'],
  ['3/16', '"3/16"'],
  [7, '7'],
  [null, 'null'],
])('the error for an invalid part contains an example: %o', (part, shown) => {
  for (const read of [partOf, writerPartOf]) {
    expect(() => read(part as WriterPartOption, env)).toThrow(
      `such as { index: 2, of: 16 } for the third of 16 parts, not ${shown}.`,
    );
  }
});

test('lock files are distinguished from other files in an output folder', () => {
  const locks = ['pack.lock', 'pack.plan.lock', partLock({ number: 3, count: 16 }), 'pack.lock.0b5e'];
  expect(locks.filter(isLockFile)).toEqual(locks);
  expect(['pack.json', 'pack.state', 'pack.locks', 'unpack.lock', 'a.lock'].filter(isLockFile)).toEqual([]);
});
