import { createHash } from 'node:crypto';
import type { SourceFiles } from './source-files.js';

/**
 * sha256 over everything that a plan is made from besides the recorded options: the folder, all files in it with their
 * sizes and times, and the list of classes.
 */
export function digestOfSource(root: string, files: SourceFiles, classes: readonly string[] | null): string {
  const hash = createHash('sha256').update(JSON.stringify([root, classes]));
  for (const piece of files.pieces()) hash.update(piece);
  return hash.digest('hex');
}
