/** The files of a dataset in a bucket: which are read on this machine, and in which order they may go. */
import { entryOf, MANIFEST_FILE, OUTPUT_LAYOUTS, PACK_NOTE_FILE, SIDECAR_NAMES, sidecarPaths } from '@shardtool/format';
import { LIST_FILES } from '../lists.js';
import { NOTE_EXTENSION, STATE_FOLDER } from '../pack-state.js';
import { isPartNote } from '../part-notes.js';

export const PLAN = `${STATE_FOLDER}/plan`;
/** What is read on this machine, and not only looked at; notes beside them. */
const READ_HERE = new Set([MANIFEST_FILE, PACK_NOTE_FILE, PLAN, ...LIST_FILES]);
/** What lies beside shards and dataset.json, one for all. */
export const SHARD_SIDECARS = [PACK_NOTE_FILE, ...LIST_FILES, ...sidecarPaths(SIDECAR_NAMES), ...layoutLists()];

/** What layouts have beside all shards. */
function layoutLists(): string[] {
  return OUTPUT_LAYOUTS.flatMap((layout) => entryOf(layout).listFile ?? []);
}

export function isReadHere(name: string): boolean {
  return READ_HERE.has(name) || isPartNote(name);
}

export function isNote(name: string): boolean {
  return name.startsWith(`${STATE_FOLDER}/`) && name.endsWith(NOTE_EXTENSION);
}

/**
 * The files that go, in turns. dataset.json goes first, since without it there is no dataset any more, and pack.json last, since
 * without it nobody knows whose the rest is.
 */
export function inTurnOfRemoval(names: readonly string[]): string[][] {
  const turn = (name: string) => (name === MANIFEST_FILE ? 0 : name === PACK_NOTE_FILE ? 3 : name === PLAN ? 2 : 1);
  return [0, 1, 2, 3].map((now) => names.filter((name) => turn(name) === now));
}
