import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { bin } from './cli-process.js';
import { emptyFolder } from './datasets.js';

const folder = emptyFolder();
const trap = path.join(folder, 'trap.cjs');
const caught = path.join(folder, 'caught.txt');
/** Records every connection and every name look-up, in all threads and processes of Node. */
writeFileSync(
  trap,
  `const { appendFileSync } = require('node:fs');
  const note = (what) => appendFileSync(${JSON.stringify(caught)}, what + '\\n');
  const { Socket } = require('node:net');
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (...args) {
    note('connect ' + JSON.stringify(args[0]));
    return connect.apply(this, args);
  };
  const dns = require('node:dns');
  const { lookup } = dns;
  dns.lookup = (name, ...rest) => {
    note('lookup ' + name);
    return lookup(name, ...rest);
  };`,
);

function run(...args: string[]): number | null {
  const env = { ...process.env, NODE_OPTIONS: `--require ${trap}` };
  return spawnSync(process.execPath, [bin, ...args], { cwd: folder, env }).status;
}

test('a command that opens a connection is detected', () => {
  run('cat', 'http://127.0.0.1:9/no.tar', 'x');
  expect(readFileSync(caught, 'utf8')).toContain('connect ');
  writeFileSync(caught, '');
});

test('commands on local data open no connection', () => {
  cpSync('examples/photos', path.join(folder, 'photos'), { recursive: true });
  for (const args of [
    ['--version'],
    ['pack', 'photos', 'shards', '--workers', '2', '--quiet'],
    ['inspect', 'shards', '--report', 'report.html'],
    ['bench', 'shards', '--batch-size', '20'],
    ['ls', 'nowhere'],
  ]) {
    expect([args, run(...args)]).toEqual([args, args[1] === 'nowhere' ? 2 : 0]);
  }
  expect(existsSync(path.join(folder, 'report.html'))).toBe(true);
  expect(readFileSync(caught, 'utf8')).toBe('');
});
