import { FileChangedError } from '@shardtool/base';
import {
  hasNoFolder,
  keptVersions,
  MANIFEST_FILE,
  type Manifest,
  parseRecordName,
  readManifest,
  readVersion,
  recordName,
  VERSION_LOG,
  type VersionRecord,
  versionFile,
} from '@shardtool/format';
import { readWholeOf, type Storage } from '@shardtool/storage';

/**
 * Keeps the current dataset.json as an earlier version, and records the change that replaces it by `next`. Call it just
 * before the commit: a change that is killed in between leaves a record that no version leads to, and the next one takes a
 * higher number. Returns the names of the files that were written; none if no sample changes.
 */
export async function keepVersion(
  storage: Storage,
  base: Pick<Manifest, 'identity'>,
  next: Manifest,
  command: string,
): Promise<readonly string[]> {
  if (base.identity === next.identity) return [];
  const kept = versionFile(base.identity);
  await storage.put(kept, await readWholeOf(storage, MANIFEST_FILE));
  const names = await recordNames(storage);
  const previous = lastRecordOf(names, base.identity);
  const record: VersionRecord = {
    version: next.identity,
    parent: base.identity,
    previous,
    command,
    time: new Date().toISOString(),
    samples: next.samples,
    shards: next.shards.length,
    bytes: next.bytes,
  };
  const last = names.reduce((most, name) => Math.max(most, parseRecordName(name)!.number), 0);
  const recorded = recordName(last + 1, next.identity);
  await storage.put(recorded, Buffer.from(`${JSON.stringify(record)}\n`));
  return [kept, recorded];
}

/** Names of all records of changes, in the order of their numbers. */
export async function recordNames(storage: Storage): Promise<readonly string[]> {
  const names: string[] = [];
  try {
    for await (const { name } of storage.list(VERSION_LOG)) if (parseRecordName(name) !== null) names.push(name);
  } catch (error) {
    if (storage.localPath === undefined || !hasNoFolder(error)) throw error;
  }
  return names;
}

/** Name of the last record of a change that made this version; null for the version that was packed first. */
export function lastRecordOf(names: readonly string[], version: string): string | null {
  return names.findLast((name) => parseRecordName(name)!.version === version.slice(0, 16)) ?? null;
}

/** Paths of the shards that the current version or a kept one of a folder names. No change may remove them. */
export async function namedShards(folder: string): Promise<ReadonlySet<string>> {
  const named = new Set((await readManifest(folder)).shards.map(({ file }) => file));
  for (const version of await keptVersions(folder)) {
    for (const { file } of (await readVersion(folder, version)).shards) named.add(file);
  }
  return named;
}

/**
 * Replaces a file that has `version`. Throws FileChangedError if it was replaced meanwhile. If the answer to an earlier try
 * was lost, the file is found as it was written.
 */
export async function replaceFile(
  storage: Storage,
  name: string,
  bytes: Uint8Array,
  version: string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await storage.put(name, bytes, { ifVersion: version, ...(signal !== undefined && { signal }) });
  } catch (error) {
    if (!(error instanceof FileChangedError)) throw error;
    const found = await readWholeOf(storage, name).catch(() => null);
    if (found === null || !Buffer.from(found).equals(bytes)) throw error;
  }
}
