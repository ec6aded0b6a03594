import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder for what several test files use and none changes; it is removed after the run. */
    shared: string;
  }
}

/** Runs once, before the first test file. */
export default function setup({ provide }: TestProject): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-shared-'));
  provide('shared', folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
