import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { availableCores, coresOfControlGroup, coresOfThisRank } from './available-cores.js';

/** Files of a root file system, by path. */
function root(files: Record<string, string>): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'cores-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

test('cores are limited by cpu.max of version 2 of control groups', () => {
  const files = { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/cpu.max': '150000 100000\n' };
  expect(coresOfControlGroup(root(files))).toBe(1.5);
});

test('the smallest limit of a control group and its parents applies', () => {
  const files = {
    'proc/self/cgroup': '0::/kubepods/pod1/box\n',
    'sys/fs/cgroup/kubepods/pod1/box/cpu.max': 'max 100000\n',
    'sys/fs/cgroup/kubepods/pod1/cpu.max': '400000 100000\n',
    'sys/fs/cgroup/kubepods/cpu.max': '6400000 100000\n',
  };
  expect(coresOfControlGroup(root(files))).toBe(4);
});

test('version 1 of control groups limits cores by a quota and a period, and -1 means no limit', () => {
  const files = {
    'proc/self/cgroup': '4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n0::/\n',
    'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '250000\n',
    'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '50000\n',
  };
  expect(coresOfControlGroup(root(files))).toBe(5);
  const unlimited = { ...files, 'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '-1\n' };
  expect(coresOfControlGroup(root(unlimited))).toBe(Number.POSITIVE_INFINITY);
});

test('there is no limit without control groups, or if their files cannot be parsed', () => {
  expect(coresOfControlGroup(root({}))).toBe(Number.POSITIVE_INFINITY);
  const odd = { 'proc/self/cgroup': 'x\n0::/../..\n0::/\n', 'sys/fs/cgroup/cpu.max': 'many 0\n' };
  expect(coresOfControlGroup(root(odd))).toBe(Number.POSITIVE_INFINITY);
});

test('at least one core is available, and at most as many as the affinity mask allows', () => {
  expect(availableCores()).toBeGreaterThanOrEqual(1);
  expect(availableCores()).toBeLessThanOrEqual(availableParallelism());
});

test('the ranks of a machine share its cores', () => {
  const cores = availableCores();
  for (const ranks of ['', '0', '1', 'two', '-1']) expect(coresOfThisRank({ LOCAL_WORLD_SIZE: ranks })).toBe(cores);
  expect(coresOfThisRank({})).toBe(cores);
  expect(coresOfThisRank({ LOCAL_WORLD_SIZE: '2' })).toBe(Math.max(1, Math.floor(cores / 2)));
  expect(coresOfThisRank({ LOCAL_WORLD_SIZE: '1000' })).toBe(1);
});
