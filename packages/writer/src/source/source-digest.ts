import { createHash } from 'node:crypto';
import type { SourceFiles } from './source-files.js';

/**
 * sha256 of everything that a plan is made from, except the recorded options: the folder, all its files with their
 * sizes and times, the list of classes, and the texts of fields made from files that may be outside the source.
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
