/** Python environments with pinned packages, made once below bench/.cache. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));

/** `above`: the environment that this one adds to. */
const ENVIRONMENTS = {
  torch: { folder: 'torch', requirements: 'requirements-torch.txt' },
  ffcv: { folder: 'torch', requirements: 'requirements-ffcv.txt', above: 'torch' },
  dali: { folder: 'dali', requirements: 'requirements-dali.txt' },
  tensorflow: { folder: 'tensorflow', requirements: 'requirements-tensorflow.txt' },
};

/** { python: path of its interpreter } or { missing: the reason }. The requirements are complete, so nothing is resolved. */
export function prepareEnvironment(name, cache, log) {
  const { folder, requirements, above } = ENVIRONMENTS[name];
  if (above !== undefined) {
    const base = prepareEnvironment(above, cache, log);
    if (base.missing !== undefined) return base;
  }
  const root = path.join(cache, 'venv', folder);
  const python = path.join(root, 'bin/python');
  const wanted = path.join(here, requirements);
  const digest = createHash('sha256').update(fs.readFileSync(wanted)).digest('hex');
  const stamp = path.join(root, `${requirements}.sha256`);
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === digest) return { python };

  log(`installing ${requirements} into ${root}`);
  const steps = [
    [process.env.PYTHON ?? 'python3', ['-m', 'venv', root]],
    [python, ['-m', 'pip', 'install', '--no-deps', '--progress-bar', 'off', '-r', wanted]],
  ];
  for (const [program, args] of steps) {
    const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
    if (error !== undefined) return { missing: `${program} could not be started: ${error.message}` };
    if (status !== 0) {
      const logFile = path.join(cache, `${requirements}.log`);
      fs.writeFileSync(logFile, stdout + stderr);
      return {
        missing: `${requirements} could not be installed (${reasonOf(stderr)}); see ${path.relative('.', logFile)}`,
      };
    }
  }
  fs.writeFileSync(stamp, digest);
  return { python };
}

/** The most informative line of a failed program's output. */
export function reasonOf(output) {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const telling = lines.findLast((line) =>
    /could not find required package|^ERROR:|^\w*(Error|Exception)\b/i.test(line),
  );
  return (telling ?? lines.at(-1) ?? 'no output').trim();
}
