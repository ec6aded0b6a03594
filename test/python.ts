import { spawnSync } from 'node:child_process';

/** The Python that tests run: `SHARDTOOL_PYTHON`, else `python3`. */
const python = process.env.SHARDTOOL_PYTHON ?? 'python3';

/**
 * A Python that can import `modules`. Null where there is none, after a line that says so; an error where
 * `SHARDTOOL_REQUIRE_PYTHON` is set, so that CI cannot pass without it.
 */
export function pythonWith(...modules: string[]): string | null {
  const { status } = spawnSync(python, ['-c', ['sys', ...modules].map((name) => `import ${name}`).join('; ')]);
  if (status === 0) return python;
  const lack = `${python} ${modules.length > 0 ? `with ${modules.join(', ')} ` : ''}is not here`;
  if (process.env.SHARDTOOL_REQUIRE_PYTHON) throw new Error(`${lack}, and SHARDTOOL_REQUIRE_PYTHON is set`);
  console.log(`${lack}: the tests that need it are skipped`);
  return null;
}

/** Runs a program on `input` as JSON and returns what it printed, parsed as JSON. */
export function runPython<T>(program: string, input: unknown): T {
  const { status, stdout, stderr } = spawnSync(python, ['-c', program], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    env: { ...process.env, PYTHONUTF8: '1' },
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`${python} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}
