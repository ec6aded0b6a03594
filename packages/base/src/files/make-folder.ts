import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Creates a folder and its parents. Returns false if it existed. The folders are created one by one, because Node's
 * recursive mode never ends if the system reports that a folder does not exist although its parent does, as in /proc.
 * Throws the system's own error.
 */
export function makeFolder(folder: string, mode?: number): boolean {
  const missing: string[] = [];
  for (let place = path.resolve(folder); !isThere(place); place = path.dirname(place)) missing.push(place);
  for (const place of missing.reverse()) {
    try {
      mkdirSync(place, { mode });
    } catch (error) {
      // Another process may have created it in the meantime.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(place).isDirectory()) throw error;
    }
  }
  if (missing.length === 0 && !statSync(folder).isDirectory()) mkdirSync(folder);
  return missing.length > 0;
}

function isThere(place: string): boolean {
  return statSync(place, { throwIfNoEntry: false }) !== undefined;
}
