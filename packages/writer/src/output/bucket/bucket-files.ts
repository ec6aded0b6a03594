/** Files of a dataset in a bucket: which are downloaded, and in which order they may be removed. */
import { entryOf, MANIFEST_FILE, OUTPUT_LAYOUTS, PACK_NOTE_FILE, SIDECAR_NAMES, sidecarPaths } from '@shardtool/format';
import { LIST_FILES } from '../lists.js';
import { NOTE_EXTENSION, STATE_FOLDER } from '../pack-state.js';
import { isPartNote } from '../part-notes.js';

export const PLAN = `${STATE_FOLDER}/plan`;
/** Files whose content is downloaded, in addition to notes; of others only name and size are needed. */
const READ_HERE = new Set([MANIFEST_FILE, PACK_NOTE_FILE, PLAN, ...LIST_FILES]);
/** Files next to shards and dataset.json that exist once per dataset. */
export const SHARD_SIDECARS = [PACK_NOTE_FILE, ...LIST_FILES, ...sidecarPaths(SIDECAR_NAMES), ...layoutLists()];

/** Files of the layouts that exist once per dataset. */
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
 * Groups the files to remove into rounds. dataset.json is first, since without it there is no dataset. pack.json is
 * last, since without it nothing shows who wrote the rest.
 */
export function inTurnOfRemoval(names: readonly string[]): string[][] {
  const turn = (name: string) => (name === MANIFEST_FILE ? 0 : name === PACK_NOTE_FILE ? 3 : name === PLAN ? 2 : 1);
  return [0, 1, 2, 3].map((now) => names.filter((name) => turn(name) === now));
}
