import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
/** As strict as a program can ask for, and with a look at the declarations that the packages publish. */
const SETTINGS = {
  target: 'ES2023',
  lib: ['ES2023', 'ESNext.Disposable', 'ES2024.SharedMemory'],
  module: 'NodeNext',
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  noEmit: true,
};

/** A folder of somebody who has installed shardtool. It is removed when the test ends. */
export function userProject(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-user-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(path.join(root, 'packages/cli'), path.join(folder, 'node_modules/shardtool'));
  symlinkSync(path.join(root, 'node_modules/@types'), path.join(folder, 'node_modules/@types'));
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: SETTINGS, include: ['*.ts'] }));
  return folder;
}

/** What the compiler says of such a folder; nothing where all is right. */
export function typeFaults(folder: string): string {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const { status, stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
  return status === 0 ? '' : stdout + stderr;
}
