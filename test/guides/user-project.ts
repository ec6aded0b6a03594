import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { emptyFolder } from '../datasets.js';

const root = path.resolve(import.meta.dirname, '../..');
/** As strict as possible, including the declarations that the packages publish. */
const SETTINGS = {
  target: 'ES2023',
  lib: ['ES2023', 'ESNext.Disposable', 'ES2024.SharedMemory'],
  module: 'NodeNext',
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  outDir: 'out',
};

/** The folder of a user who has installed shardtool. It is removed after the tests of the file. */
export function userProject(): string {
  const folder = emptyFolder();
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(path.join(root, 'packages/cli'), path.join(folder, 'node_modules/shardtool'));
  symlinkSync(path.join(root, 'node_modules/@shardtool'), path.join(folder, 'node_modules/@shardtool'));
  symlinkSync(path.join(root, 'node_modules/@types'), path.join(folder, 'node_modules/@types'));
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: SETTINGS, include: ['*.ts'] }));
  return folder;
}

/** Compiles such a folder into its folder `out`. Returns the output of the compiler, which is empty if there are no errors. */
export function compile(folder: string): string {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  // Several threads would check much of the same code.
  const { status, stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', folder, '--singleThreaded'], {
    encoding: 'utf8',
  });
  return status === 0 ? '' : stdout + stderr;
}
