import { OptionError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { isLockFile, partLock } from './output/parts.js';
import { isTurnOf, parsePart, partOfEnvironment } from './part.js';

test('a part is its number, from 1, and how many there are', () => {
  expect(parsePart('3/16')).toEqual({ number: 3, count: 16 });
  expect(parsePart('1/1')).toEqual({ number: 1, count: 1 });
  for (const wrong of ['0/16', '17/16', '3', '3/', '/16', '-1/4', '1.5/4', '3 / 16', '']) {
    expect(() => parsePart(wrong), wrong).toThrow(OptionError);
  }
});

test('each shard is the turn of exactly one part', () => {
  for (let shard = 0; shard < 20; shard++) {
    const takers = [1, 2, 3].filter((number) => isTurnOf({ number, count: 3 }, shard));
    expect(takers).toEqual([(shard % 3) + 1]);
  }
});

function found(env: NodeJS.ProcessEnv): string | undefined {
  return partOfEnvironment(env)?.part;
}

test('the array of a Slurm job may begin anywhere and have steps', () => {
  const array = (id: number, count: number, min: number, step?: number) =>
    found({
      ...{ SLURM_ARRAY_TASK_ID: `${id}`, SLURM_ARRAY_TASK_COUNT: `${count}`, SLURM_ARRAY_TASK_MIN: `${min}` },
      ...(step !== undefined && { SLURM_ARRAY_TASK_STEP: `${step}` }),
    });
  expect(array(0, 16, 0)).toBe('1/16');
  expect(array(15, 16, 0)).toBe('16/16');
  expect(array(1, 16, 1)).toBe('1/16');
  expect(array(14, 4, 10, 2)).toBe('3/4');
  expect(() => array(7, 3, 1)).toThrow('give the option "part"');
});

test('an Indexed Job of Kubernetes counts from 0, and outside of both there is no part', () => {
  expect(found({ JOB_COMPLETION_INDEX: '0', JOB_COMPLETIONS: '8' })).toBe('1/8');
  expect(found({ JOB_COMPLETION_INDEX: '7', JOB_COMPLETIONS: '8' })).toBe('8/8');
  expect(found({ JOB_COMPLETIONS: '8', SLURM_ARRAY_TASK_COUNT: '8' })).toBeUndefined();
  expect(found({})).toBeUndefined();
  expect(() => found({ JOB_COMPLETION_INDEX: '8', JOB_COMPLETIONS: '8' })).toThrow(OptionError);
});

test('a process of a job that does not say how many there are is refused, since each would pack everything', () => {
  for (const env of [{ JOB_COMPLETION_INDEX: '3' }, { JOB_COMPLETION_INDEX: '3', JOB_COMPLETIONS: '' }]) {
    expect(() => found(env)).toThrow(
      'JOB_COMPLETION_INDEX=3 says that this is one of several processes, and JOB_COMPLETIONS is not set',
    );
  }
  expect(() => found({ SLURM_ARRAY_TASK_ID: '3' })).toThrow('SLURM_ARRAY_TASK_COUNT is not set');
});

test('locks are told from what else lies in an output folder', () => {
  const locks = ['pack.lock', 'pack.plan.lock', partLock({ number: 3, count: 16 }), 'pack.lock.0b5e'];
  expect(locks.filter(isLockFile)).toEqual(locks);
  expect(['pack.json', 'pack.state', 'pack.locks', 'unpack.lock', 'a.lock'].filter(isLockFile)).toEqual([]);
});
