import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  crc32,
  crc32Hex,
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
import { checkManifest, MANIFEST_VERSION } from './manifest-schema.js';

export const MANIFEST_FILE = 'dataset.json';

/** One shard of a dataset. Shards are in the order of the dataset. */
export interface ManifestShard {
  /** Path relative to the dataset's folder: `000000.tar`, or `000000.lmdb/data.mdb` if a shard is a folder. */
  readonly file: string;
  /** Size of the file, in bytes. */
  readonly bytes: number;
  readonly samples: number;
  /** crc32 of the file, as eight hexadecimal digits. */
  readonly crc32: string;
  /** Length of the longest sample in the shard, in bytes. A reader needs a buffer of this size. */
  readonly maxSampleBytes: number;
}

/** A dataset: the content of dataset.json. It is written last, so its presence means that the pack is complete. */
export interface Manifest {
  readonly version: typeof MANIFEST_VERSION;
  readonly format: OutputLayoutName;
  /** See {@link identityOf}. */
  readonly identity: string;
  readonly samples: number;
  /** Total size of all shards, in bytes. */
  readonly bytes: number;
  /** The classes, in the order of their numbers. */
  readonly classes: readonly { readonly name: string; readonly samples: number }[];
  /** Sorted by name; `samples` is the number of samples that have the field. */
  readonly fields: readonly { readonly name: string; readonly samples: number }[];
  /** The label columns, in the order in which every index has them. */
  readonly columns: readonly ManifestColumn[];
  readonly shards: readonly ManifestShard[];
  /** For a dataset made from part of another one: the identity of the source, with overlay, its hash and split. */
  readonly madeFrom?: string | undefined;
}

/** A label column. */
export interface ManifestColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** For the column `boxes` made from annotations: its largest value, the highest number of objects in an image. */
  readonly most?: number | undefined;
}

/** Builds the manifest of these shards, with its totals and its identity. */
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
 * The identity of a dataset: sha256 over name, number of samples and crc32 of each shard, in order. It does not depend
 * on when or where the dataset was packed. For shards without a manifest, `crc32` may be any text that changes when the
 * shard does.
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
 * Commits a pack: writes dataset.json under a temporary name, flushes it, renames it and flushes the folder, which also
 * makes the names of the shards durable. Throws {@link FileError}.
 */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  await writeAtomically(join(folder, MANIFEST_FILE), Buffer.from(manifestText(manifest)));
  await flushFolder(folder);
}

/**
 * JSON with one line for each class, field, column and shard, so that tools can search it line by line. The last line
 * is the crc32 of the text, computed with zeros in place of its digits.
 */
export function manifestText(manifest: Manifest): string {
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

/** Whether the text of a dataset.json has a checksum line. */
export function hasChecksum(text: string): boolean {
  return SEAL.test(text);
}

/** Whether the text of a dataset.json matches its checksum. A text without the checksum line was written by hand, and is accepted. */
export function isManifestAsWritten(text: string): boolean {
  const digits = SEAL.exec(text)?.[1];
  return digits === undefined || crc32Hex(crc32(sealed(text, OPEN_SEAL))) === digits;
}

/**
 * Whether the original text `written` and a damaged text hold the same values: they have the same checksum. Up to two
 * of the eight digits may themselves be damaged; six digits agree by chance once in 700,000 times.
 */
export function hasSameValues(written: string, changed: string): boolean {
  const [here, there] = [SEAL.exec(written)?.[1] ?? '', /"crc32": "(.{8})"/.exec(changed)?.[1] ?? ''];
  return [...here].filter((digit, i) => digit === there[i]).length >= 6;
}

/**
 * Reads dataset.json. Throws {@link UnfinishedPackError} if the folder has none, {@link VersionError} if a newer
 * version wrote it, {@link ManifestError} if it has changed since it was written, and {@link FileError}.
 */
export async function readManifest(folder: string, storage?: StorageOptions): Promise<Manifest> {
  const file = joinLocation(folder, MANIFEST_FILE);
  const path = shownLocation(file);
  return readAgainIf([ManifestError, VersionError], file, storage, async () =>
    parseManifest(await readText(folder, storage), path),
  );
}

/** {@link readManifest} for a text. `path` is for messages. */
export async function parseManifest(text: string, path: string): Promise<Manifest> {
  const json = parseJson(text, path);
  checkVersion(json, path);
  const manifest = checkManifest(json);
  if (typeof manifest === 'string') throw damaged(path, manifest);
  if (!isManifestAsWritten(text))
    throw damaged(path, 'it has changed since it was written (if you edit it by hand, remove its line "crc32")');
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
        `${shown} was written by save_to_disk of Hugging Face datasets, as Arrow files, which shardtool does not read. Save each ` +
          `split as Parquet with datasets.load_from_disk(...).to_parquet("train.parquet"), and give that file.`,
        { cause },
      );
    }
    const message =
      `${shown} has no ${MANIFEST_FILE}: it is not a dataset, or its pack did not finish. Run "shardtool pack" again, or ` +
      'give the shards themselves.';
    throw new UnfinishedPackError({ path: shown }, message, { cause });
  }
}

/** Whether this folder holds a dataset, or one dataset per split, saved by `save_to_disk` of Hugging Face datasets. */
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
  const message = `${path} has version ${found}, but this shardtool reads versions up to ${MANIFEST_VERSION}; update shardtool.`;
  throw new VersionError({ path, found, known: MANIFEST_VERSION }, message);
}

function damaged(path: string, what: string, cause?: unknown): ManifestError {
  return new ManifestError(
    { path },
    `${path} is damaged: ${what}; restore it, or run "shardtool verify --fix" to rebuild it.`,
    { cause },
  );
}
