import { abortable, CALL_OPTIONS, checkCallOptions, checkLocation, inLanes, type OptionTable } from '@shardtool/base';
import { keptVersions, parseManifest, type VersionRecord, versionFile } from '@shardtool/format';
import { openStorage, readWholeOf, type Storage, type StorageOptions } from '@shardtool/storage';
import { lastRecordOf, recordNames } from '../output/keep-version.js';
import { currentManifest } from './packed-dataset.js';

/** One version of a dataset. */
export interface DatasetVersion {
  /** Its identity, which `openDataset` takes as `version`, and which states of loaders name. */
  readonly version: string;
  /** The version before; null for the first. */
  readonly parent: string | null;
  /** The command that made it, such as `append`; null for the first version. */
  readonly command: string | null;
  /** When it was committed, in ISO 8601; null for the first version. */
  readonly time: string | null;
  readonly isCurrent: boolean;
  /** Whether it can be opened and restored: "gc" has not removed it. */
  readonly isKept: boolean;
  /** Numbers of samples, shards and bytes; null for a first version that is no longer kept. */
  readonly samples: number | null;
  readonly shards: number | null;
  readonly bytes: number | null;
}

export interface LogOptions {
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const LOG_OPTIONS = { storage: CALL_OPTIONS.storage, signal: CALL_OPTIONS.signal } as const satisfies OptionTable;
const READ_AT_ONCE = 16;

/**
 * Lists the versions of a dataset, the current one first. Throws UnfinishedPackError if there is no dataset, and FileError.
 */
export async function listVersions(location: string, options: LogOptions = {}): Promise<readonly DatasetVersion[]> {
  checkLocation('listVersions', location);
  checkCallOptions('listVersions', LOG_OPTIONS, options);
  const chain = await abortable(options.signal, () => chainOf(location, options.storage));
  return chain.map(({ record: _, ...version }) => version);
}

/** A version, and the name of the record of the change that made it. */
export interface ChainLink extends DatasetVersion {
  readonly record: string | null;
}

/** The versions that led to the current one, the current one first. */
export async function chainOf(location: string, options: StorageOptions | undefined): Promise<readonly ChainLink[]> {
  const current = await currentManifest(location, options);
  const storage = await openStorage(location, options);
  const kept = new Set(await keptVersions(location, options));
  const records = await readRecords(storage);
  const links: ChainLink[] = [];
  let version = current.identity;
  let name = lastRecordOf([...records.keys()], version);
  while (true) {
    const isCurrent = links.length === 0;
    const record = name === null ? null : (records.get(name) ?? null);
    const facts = isCurrent ? { ...current, shards: current.shards.length } : record;
    links.push({
      version,
      parent: record?.parent ?? null,
      command: record?.command ?? null,
      time: record?.time ?? null,
      isCurrent,
      isKept: isCurrent || kept.has(version),
      ...(facts === null
        ? await firstCounts(storage, kept.has(version) ? version : null)
        : { samples: facts.samples, shards: facts.shards, bytes: facts.bytes }),
      record: name,
    });
    if (record === null) return links;
    version = record.parent;
    name = record.previous;
  }
}

async function firstCounts(
  storage: Storage,
  version: string | null,
): Promise<Pick<DatasetVersion, 'samples' | 'shards' | 'bytes'>> {
  if (version === null) return { samples: null, shards: null, bytes: null };
  const { samples, shards, bytes } = await readManifestOf(storage, version);
  return { samples, shards: shards.length, bytes };
}

async function readManifestOf(storage: Storage, version: string) {
  const name = versionFile(version);
  return parseManifest(Buffer.from(await readWholeOf(storage, name)).toString(), `${storage.location}/${name}`);
}

/** The records of all changes, by name and in the order of their numbers. */
async function readRecords(storage: Storage): Promise<Map<string, VersionRecord>> {
  const names = await recordNames(storage);
  const records = await inLanes(names, READ_AT_ONCE, async (name): Promise<VersionRecord> => {
    return JSON.parse(Buffer.from(await readWholeOf(storage, name)).toString());
  });
  return new Map(names.map((name, i) => [name, records[i]!]));
}
