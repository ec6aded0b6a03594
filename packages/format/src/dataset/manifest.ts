import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  crc32,
  crc32Hex,
  FileError,
  FileNotFoundError,
  flushFolder,
  ManifestError,
  UnfinishedPackError,
  UnsupportedShardError,
  VersionError,
  writeAtomically,
} from '@shardtool/base';
import { isRemote, joinLocation, readAgainIf, readWhole, type StorageOptions, shownLocation } from '@shardtool/storage';
import type { OutputLayoutName } from '../layouts/registry.js';
import type { ColumnType } from '../shard-index/shard-index.js';

/** The newest version of dataset.json that is read, and the one that is written. */
export const MANIFEST_VERSION = 1;
export const MANIFEST_FILE = 'dataset.json';

/** One shard of a dataset, in the order of the dataset. */
export interface ManifestShard {
  /** Below the dataset's folder: `000000.tar`, or `000000.lmdb/data.mdb` where a shard is a folder of its own. */
  readonly file: string;
  /** Size of the file. */
  readonly bytes: number;
  readonly samples: number;
  /** crc32 of the file, eight hexadecimal digits. */
  readonly crc32: string;
  /** Length of the longest span of a sample in it: what a reader must have room for. */
  readonly maxSampleBytes: number;
}

/** What a dataset is: the content of dataset.json, which is written last and so says that the pack is whole. */
export interface Manifest {
  readonly version: typeof MANIFEST_VERSION;
  readonly format: OutputLayoutName;
  /** See {@link identityOf}. */
  readonly identity: string;
  readonly samples: number;
  /** Of all shards. */
  readonly bytes: number;
  /** In the order of their numbers. */
  readonly classes: readonly { readonly name: string; readonly samples: number }[];
  /** Sorted by name; `samples` is how many have the field. */
  readonly fields: readonly { readonly name: string; readonly samples: number }[];
  /** Columns that came with the labels, as they stand in every index. */
  readonly columns: readonly ManifestColumn[];
  readonly shards: readonly ManifestShard[];
  /** Of a dataset that was made from a part of another: the identity of what was read, with overlay, its hash and split. */
  readonly madeFrom?: string | undefined;
}

/** A label column. */
export interface ManifestColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** Of the column `boxes` that annotations made: its largest value, the most objects of an image. */
  readonly most?: number | undefined;
}

/** The manifest of these shards, with its totals and its identity. */
export function createManifest(
  parts: Pick<Manifest, 'format' | 'classes' | 'fields' | 'columns' | 'shards' | 'madeFrom'>,
): Manifest {
  const { format, classes, fields, columns, shards, madeFrom } = parts;
  const { samples, bytes } = totalsOf(shards);
  const identity = identityOf(shards);
  const origin = madeFrom === undefined ? {} : { madeFrom };
  return { version: MANIFEST_VERSION, format, identity, samples, bytes, ...origin, classes, fields, columns, shards };
}

/**
 * What makes a dataset the same: sha256 over name, number of samples and crc32 of each shard, in their order. It says
 * nothing of when or where the dataset was packed. For shards without a manifest, `crc32` may be any text that changes
 * when the shard does.
 */
export function identityOf(shards: readonly Pick<ManifestShard, 'file' | 'samples' | 'crc32'>[]): string {
  const hash = createHash('sha256');
  hash.update(shards.map(({ file, samples, crc32 }) => JSON.stringify([file, samples, crc32])).join('\n'));
  return hash.digest('hex');
}

function totalsOf(shards: readonly ManifestShard[]): { samples: number; bytes: number } {
  let samples = 0;
  let bytes = 0;
  for (const shard of shards) {
    samples += shard.samples;
    bytes += shard.bytes;
  }
  return { samples, bytes };
}

/**
 * Commits a pack: writes dataset.json under a temporary name, flushes it, renames it and flushes the folder, and with it
 * the names of the shards. Throws {@link FileError}.
 */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  await writeAtomically(join(folder, MANIFEST_FILE), Buffer.from(manifestText(manifest)));
  await flushFolder(folder);
}

/**
 * JSON with one line for each class, field, column and shard, so that it can be read and searched line by line. The last
 * line is the crc32 of the text, taken with zeros in its place.
 */
function manifestText(manifest: Manifest): string {
  const lines = Object.entries(manifest).map(([name, value]) => {
    const text = Array.isArray(value)
      ? `[${value.map((item) => `\n    ${JSON.stringify(item)}`).join(',')}\n  ]`
      : JSON.stringify(value);
    return `  ${JSON.stringify(name)}: ${text}`;
  });
  const open = `{\n${[...lines, `  "crc32": "${OPEN_SEAL}"`].join(',\n')}\n}\n`;
  return sealed(open, crc32Hex(crc32(open)));
}

const OPEN_SEAL = '00000000';
const SEAL = /^ {2}"crc32": "([0-9a-f]{8})"$/m;

function sealed(text: string, digits: string): string {
  return text.replace(SEAL, `  "crc32": "${digits}"`);
}

/** Whether the text of a dataset.json has the line of its checksum. */
export function hasChecksum(text: string): boolean {
  return SEAL.test(text);
}

/** Whether the text of a dataset.json is as it was written. One without the line of the checksum was written by hand, and may be. */
export function isManifestAsWritten(text: string): boolean {
  const digits = SEAL.exec(text)?.[1];
  return digits === undefined || crc32Hex(crc32(sealed(text, OPEN_SEAL))) === digits;
}

/**
 * Whether the text `written` has every value that a text had which has changed since: it has the same checksum. Two of the
 * eight digits may be what has changed; by chance six agree once in 700,000 times.
 */
export function hasSameValues(written: string, changed: string): boolean {
  const [here, there] = [SEAL.exec(written)?.[1] ?? '', /"crc32": "(.{8})"/.exec(changed)?.[1] ?? ''];
  return [...here].filter((digit, i) => digit === there[i]).length >= 6;
}

/**
 * Reads dataset.json. Throws {@link UnfinishedPackError} where the folder has none, {@link VersionError} where a newer
 * version wrote it, {@link ManifestError} where it is not as it was written, {@link FileError}.
 */
export async function readManifest(folder: string, storage?: StorageOptions): Promise<Manifest> {
  const path = shownLocation(joinLocation(folder, MANIFEST_FILE));
  return readAgainIf([ManifestError, VersionError], folder, async () =>
    parseManifest(await readText(folder, storage), path),
  );
}

/** {@link readManifest} of a text; `path` is for messages. */
export async function parseManifest(text: string, path: string): Promise<Manifest> {
  const json = parseJson(text, path);
  checkVersion(json, path);
  // Writers and workers, which read no manifest, do not wait for zod.
  const { checkManifest } = await import('./manifest-schema.js');
  const manifest = checkManifest(json);
  if (typeof manifest === 'string') throw damaged(path, manifest);
  if (!isManifestAsWritten(text))
    throw damaged(
      path,
      'it has changed since it was written (one that is edited by hand has to leave out its line "crc32")',
    );
  const { samples, bytes } = totalsOf(manifest.shards);
  if (manifest.samples !== samples || manifest.bytes !== bytes || manifest.identity !== identityOf(manifest.shards)) {
    throw damaged(path, 'its list of shards does not agree with its totals and identity');
  }
  return manifest;
}

async function readText(folder: string, storage: StorageOptions | undefined): Promise<string> {
  try {
    return Buffer.from(await readWhole(joinLocation(folder, MANIFEST_FILE), storage)).toString();
  } catch (cause) {
    if (!(cause instanceof FileNotFoundError)) throw cause;
    if (!isRemote(folder) && !(await isDirectory(folder))) throw cause;
    const shown = shownLocation(folder);
    if (!isRemote(folder) && (await isSavedToDisk(folder))) {
      throw new UnsupportedShardError(
        { path: shown },
        `${shown} is what save_to_disk of Hugging Face's datasets wrote, in Arrow, which is not read here: write each ` +
          `split as Parquet, datasets.load_from_disk(...).to_parquet("train.parquet"), and give that.`,
        { cause },
      );
    }
    const message =
      `${shown} has no ${MANIFEST_FILE}: it is no dataset, or its pack did not end; run "shardtool pack" again, or ` +
      'give the shards themselves.';
    throw new UnfinishedPackError({ path: shown }, message, { cause });
  }
}

/** Whether `datasets` has saved a dataset, or one for each split, in this folder. */
async function isSavedToDisk(folder: string): Promise<boolean> {
  const names = await readdir(folder);
  return names.includes('dataset_dict.json') || (names.includes('state.json') && names.includes('dataset_info.json'));
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() ?? false;
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(path, (cause as Error).message, cause);
  }
}

function checkVersion(json: unknown, path: string): void {
  const found = (json as { version?: unknown } | null)?.version;
  if (typeof found !== 'number' || !(found > MANIFEST_VERSION)) return;
  const message = `${path} is of version ${found}, this shardtool reads up to version ${MANIFEST_VERSION}; update shardtool.`;
  throw new VersionError({ path, found, known: MANIFEST_VERSION }, message);
}

function damaged(path: string, what: string, cause?: unknown): ManifestError {
  return new ManifestError(
    { path },
    `${path} is damaged: ${what}; restore it, or have "shardtool verify --fix" make it anew.`,
    { cause },
  );
}
