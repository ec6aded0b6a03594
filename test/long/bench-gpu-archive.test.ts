import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { emptyFolder } from '../datasets.js';
import { pythonWith, runPython } from '../python.js';

const hasPython = pythonWith('lzma') !== null;

test.runIf(hasPython)('the archive for a GPU machine runs with Python only, and reports that there is no GPU', () => {
  const folder = emptyFolder();
  const archive = path.join(folder, 'shardtool-gpu.pyz');
  const python = runPython<string>('import json, sys; print(json.dumps(sys.executable))', null);
  const run = (args: string[], options: object) => {
    const { status, stdout, stderr } = spawnSync(python, args, { encoding: 'utf8', timeout: 150_000, ...options });
    return { status, output: `${stdout}${stderr}`.trim() };
  };
  const made = run(['bench/gpu/make_archive.py', '--node', process.execPath, '--uncompressed', '--out', archive], {});
  expect(made.output).toMatch(/shardtool-gpu\.pyz: [\d.]+ MiB$/);
  const cwd = path.join(folder, 'elsewhere');
  mkdirSync(cwd);
  const env = { PATH: '/nowhere', SHARDTOOL_CUDA_DRIVER: '/nowhere/libcuda.so.1' };
  const { status, output } = run([archive], { cwd, env });
  expect(output).toMatch(/^Nothing was measured: Found no CUDA driver \(.*\): install .*\.$/);
  expect(status).toBe(2);
  expect(readdirSync(cwd)).toEqual(['results']);
});
