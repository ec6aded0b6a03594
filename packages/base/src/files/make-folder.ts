import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Makes a folder, and those above it; false where it was there. One after the other, since Node's own recursive way never
 * ends where the system says that a folder is not there although the one above it is, as in /proc. Throws the
 * system's own error.
 */
export function makeFolder(folder: string, mode?: number): boolean {
  const missing: string[] = [];
  for (let place = path.resolve(folder); !isThere(place); place = path.dirname(place)) missing.push(place);
  for (const place of missing.reverse()) {
    try {
      mkdirSync(place, { mode });
    } catch (error) {
      // Another process may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(place).isDirectory()) throw error;
    }
  }
  if (missing.length === 0 && !statSync(folder).isDirectory()) mkdirSync(folder);
  return missing.length > 0;
}

function isThere(place: string): boolean {
  return statSync(place, { throwIfNoEntry: false }) !== undefined;
}
