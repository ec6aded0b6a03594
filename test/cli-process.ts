import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../packages/cli/', import.meta.url));

/** The program that `npx shardtool` starts. */
export const bin = path.join(cli, JSON.parse(readFileSync(path.join(cli, 'package.json'), 'utf8')).bin.shardtool);

/**
 * Standard error without progress lines, which begin with the time: a command that takes more than 5 seconds prints them, and on
 * a busy machine any command may take that long.
 */
export const withoutProgress = (stderr: string): string =>
  stderr.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ .*\n/gm, '');

/** The result of a process. */
export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as bytes. */
  readonly bytes: Buffer;
}

/** Runs `shardtool` with these arguments in a separate process. */
export function shardtool(...args: string[]): Promise<Outcome> {
  return run(process.execPath, [bin, ...args]);
}

/** The same with additional environment variables. */
export function shardtoolWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Outcome> {
  return run(process.execPath, [bin, ...args], env);
}

/** Runs a line in bash, where `shardtool` is the program. */
export function bash(line: string, env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  const program = `shardtool() { "${process.execPath}" "${bin}" "$@"; }; export -f shardtool; ${line}`;
  return run('bash', ['-c', program], env);
}

/**
 * Runs a line in bash with a terminal of 100 columns as its input and output; `stdout` is the output on the terminal. The
 * output of the line `typing` is typed there.
 */
export function terminal(line: string, env: NodeJS.ProcessEnv = {}, typing = ':'): Promise<Outcome> {
  const quoted = `stty cols 100; ${line}`.replaceAll("'", `'\\''`);
  const inTerminal = `{ ${typing}; } | script --quiet --return --command '${quoted}' /dev/null`;
  return bash(inTerminal, { TERM: 'xterm-256color', SHELL: '/bin/bash', ...env });
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    // The colours of the test runner's terminal and its options must not affect the program, and Node uses no colours
    // in a terminal that it considers to be of a CI service.
    const { FORCE_COLOR, NO_COLOR, NODE_OPTIONS, CI, TMUX, COLORTERM, ...inherited } = process.env;
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...inherited, ...env },
      timeout: 150_000,
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const bytes = Buffer.concat(stdout);
      resolve({
        code,
        signal,
        bytes,
        stdout: bytes.toString(),
        stderr: withoutProgress(Buffer.concat(stderr).toString()),
      });
    });
  });
}
