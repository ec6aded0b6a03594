import { openSync, readdirSync, rmSync, statSync, unlinkSync } from 'node:fs';
import path from 'node:path';
import { newToken, stateOf, TOKEN_PATTERN } from './process-identity.js';

/** Extension of files that are not completely written yet. */
const ENDING = '.part';

/** `NAME.TOKEN.part`; earlier versions wrote `NAME.part`. */
const TEMPORARY = new RegExp(`^(.+?)(?:\\.(${TOKEN_PATTERN}))?\\${ENDING}$`);

/**
 * If the process that wrote a file cannot be looked up, the file counts as abandoned after this time without a write.
 */
const ABANDONED_MS = 60 * 60_000;

/**
 * Name of a file until it is completely written. No two writers have the same token, so a writer never writes into the
 * file of another writer.
 */
export function temporaryName(file: string, token = newToken()): string {
  return `${file}.${token}${ENDING}`;
}

/**
 * Parses the name of a temporary file: the final name, and the token of the writer (null for earlier versions). Null if
 * the name is not that of a temporary file.
 */
export function parseTemporaryName(name: string): { readonly final: string; readonly token: string | null } | null {
  const [, final, token = null] = TEMPORARY.exec(name) ?? [];
  return final === undefined ? null : { final, token };
}

/** Removes all temporary files of files with these names. The caller must know that no other process writes them. */
export function removeTemporaries(folder: string, finals: ReadonlySet<string>): void {
  for (const name of namesIn(folder)) {
    if (finals.has(parseTemporaryName(name)?.final ?? '')) rmSync(path.join(folder, name), { force: true });
  }
}

/** Removes temporary files of processes that have ended: all of them in the folder, or those that `isMeant` selects. */
export function removeAbandoned(folder: string, isMeant: (final: string) => boolean = () => true): void {
  for (const name of namesIn(folder)) {
    const parsed = parseTemporaryName(name);
    if (parsed === null || parsed.token === null || !isMeant(parsed.final)) continue;
    const file = path.join(folder, name);
    if (isAbandoned(parsed.token, file)) rmSync(file, { force: true });
  }
}

/** Name of the files of {@link openWithoutName} while they have one. */
const WITHOUT_NAME = 'spool';

/**
 * Opens a new file in the folder for writing and reading, and removes its name, so that the file is gone when its
 * process ends. Returns its descriptor.
 */
export function openWithoutName(folder: string): number {
  const file = path.join(folder, temporaryName(WITHOUT_NAME));
  const fd = openSync(file, 'wx+');
  unlinkSync(file);
  return fd;
}

/** Removes files of {@link openWithoutName} whose process was killed before it had removed their names. */
export function removeLeftWithoutName(folder: string): void {
  removeAbandoned(folder, (final) => final === WITHOUT_NAME);
}

function isAbandoned(token: string, file: string): boolean {
  const state = stateOf(token);
  if (state !== 'unknown') return state === 'gone';
  const found = statSync(file, { throwIfNoEntry: false });
  return found !== undefined && Date.now() - found.mtimeMs > ABANDONED_MS;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
