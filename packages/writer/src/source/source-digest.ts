import { createHash } from 'node:crypto';
import type { SourceFiles } from './source-files.js';

/**
 * sha256 over everything that a plan is made from besides the recorded options: the folder, all files in it with their
 * sizes and times, the list of classes, and the texts of fields that are made of files which may lie elsewhere.
 */
export function digestOfSource(
  root: string,
  files: SourceFiles,
  classes: readonly string[] | null,
  texts: Iterable<string> = [],
): string {
  const hash = createHash('sha256').update(JSON.stringify([root, classes]));
  for (const piece of files.pieces()) hash.update(piece);
  for (const text of texts) hash.update(text);
  return hash.digest('hex');
}
