import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** The Python that tests use: `SHARDTOOL_PYTHON`, else that of `.venv`, else `python3`. */
const python = process.env.SHARDTOOL_PYTHON ?? (existsSync('.venv/bin/python') ? '.venv/bin/python' : 'python3');
/** The Python of the distribution, with its own packages: `SHARDTOOL_SYSTEM_PYTHON`, else `/usr/bin/python3`. */
const systemPython = process.env.SHARDTOOL_SYSTEM_PYTHON ?? '/usr/bin/python3';

/** Fails if a module that its arguments name is not installed. */
const HAS_MODULES = 'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))';

/**
 * A Python that can import `modules`. If there is none, prints that and returns null, or throws if
 * `SHARDTOOL_REQUIRE_PYTHON` is set, so that CI cannot pass without it.
 */
export function pythonWith(...modules: string[]): string | null {
  return interpreterWith(python, modules);
}

/** The same for the distribution's Python. */
export function systemPythonWith(...modules: string[]): string | null {
  return interpreterWith(systemPython, modules);
}

/**
 * One of the Pythons in `SHARDTOOL_REFEREES` (paths, separated by ":") that has a module; null if there is none.
 * There are several, because their packages require different versions of the same packages.
 */
export function refereeWith(module: string): string | null {
  const referees = process.env.SHARDTOOL_REFEREES?.split(':') ?? [python];
  const found = referees.find((one) => spawnSync(one, ['-c', `import ${module}`]).status === 0);
  if (found === undefined) console.log(`none of ${referees.join(', ')} has ${module}: its tests are skipped`);
  return found ?? null;
}

function interpreterWith(interpreter: string, modules: readonly string[]): string | null {
  // Importing them takes up to three seconds of CPU time, and the test does it again.
  const { status } = spawnSync(interpreter, ['-c', HAS_MODULES, ...modules]);
  if (status === 0) return interpreter;
  const lack = `${interpreter} ${modules.length > 0 ? `with ${modules.join(', ')} ` : ''}is not here`;
  if (process.env.SHARDTOOL_REQUIRE_PYTHON) throw new Error(`${lack}, and SHARDTOOL_REQUIRE_PYTHON is set`);
  console.log(`${lack}: the tests that need it are skipped`);
  return null;
}

/** Runs a program on `input` as JSON, with `args`, and returns what it printed, parsed as JSON. */
export function runPython<T>(program: string, input: unknown, interpreter = python, args: readonly string[] = []): T {
  const { status, signal, stdout, stderr } = spawnSync(interpreter, ['-c', program, ...args], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    env: { ...process.env, PYTHONUTF8: '1' },
    maxBuffer: 1 << 26,
    timeout: 150_000,
  });
  if (status !== 0) throw new Error(`${interpreter} ended with ${status ?? signal}: ${stderr}`);
  return JSON.parse(stdout);
}
