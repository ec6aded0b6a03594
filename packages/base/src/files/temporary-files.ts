import { readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { newToken, stateOf, TOKEN_PATTERN } from './process-identity.js';

/** At the end of the name of every file that is not whole yet. */
const ENDING = '.part';

/** `NAME.TOKEN.part`; earlier versions wrote `NAME.part`. */
const TEMPORARY = new RegExp(`^(.+?)(?:\\.(${TOKEN_PATTERN}))?\\${ENDING}$`);

/** A file of a process that cannot be asked is taken for abandoned if it was not written to for this long. */
const ABANDONED_MS = 60 * 60_000;

/** The name under which a file is written until it is whole. No two writers have the same token, so none writes into the file of another. */
export function temporaryName(file: string, token = newToken()): string {
  return `${file}.${token}${ENDING}`;
}

/** The name that a temporary file is to get, and the token of its writer (of an earlier version: null). Null for any other name. */
export function parseTemporaryName(name: string): { readonly final: string; readonly token: string | null } | null {
  const [, final, token = null] = TEMPORARY.exec(name) ?? [];
  return final === undefined ? null : { final, token };
}

/** Removes all temporary files of files with these names: the caller knows that no other process writes them now. */
export function removeTemporaries(folder: string, finals: ReadonlySet<string>): void {
  for (const name of namesIn(folder)) {
    if (finals.has(parseTemporaryName(name)?.final ?? '')) rmSync(path.join(folder, name), { force: true });
  }
}

/** Removes temporary files of processes that have ended, of all files in the folder or only of those that `isMeant` chooses. */
export function removeAbandoned(folder: string, isMeant: (final: string) => boolean = () => true): void {
  for (const name of namesIn(folder)) {
    const parsed = parseTemporaryName(name);
    if (parsed === null || parsed.token === null || !isMeant(parsed.final)) continue;
    const file = path.join(folder, name);
    if (isAbandoned(parsed.token, file)) rmSync(file, { force: true });
  }
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
