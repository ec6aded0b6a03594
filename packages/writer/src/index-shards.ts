import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  buildShardIndex,
  crc32Hex,
  createManifest,
  FileError,
  indexPathOf,
  layoutOf,
  MANIFEST_FILE,
  type ManifestShard,
  openSource,
  OptionError,
  type ShardIndex,
  writeManifest,
  writeShardIndex,
} from '@shardtool/format';
import { fileCrc32 } from './file-crc32.js';

export interface IndexReport {
  readonly shards: number;
  readonly samples: number;
  /** Entries of the tars that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
  /** The manifest that was written, where a whole folder was indexed. */
  readonly dataset: string | null;
}

/**
 * Walks tars of other software and writes `NAME.parquet` beside each; for a folder also dataset.json, which makes it a
 * dataset like a packed one. Throws {@link OptionError} where an index or a manifest is there already, unless `overwrite`.
 */
export async function indexShards(locations: readonly string[], options: { readonly overwrite?: boolean } = {}): Promise<IndexReport> {
  const folder = locations.length === 1 && (await isFolder(locations[0]!)) ? locations[0]! : null;
  const tars = folder === null ? locations : await tarsIn(folder);
  const wanted = [...tars.map(indexPathOf), ...(folder === null ? [] : [path.join(folder, MANIFEST_FILE)])];
  if (options.overwrite !== true) await checkFree(wanted);
  const report = { shards: 0, samples: 0, skippedEntries: 0 };
  const records: ManifestShard[] = [];
  const fields = new Map<string, number>();
  for (const tar of tars) {
    const { index, record, skipped } = await indexTar(tar);
    await writeShardIndex(indexPathOf(tar), index);
    records.push(record);
    for (const [name, { offset }] of index.fields) {
      fields.set(name, (fields.get(name) ?? 0) + offset.reduce((count, at) => count + (at >= 0 ? 1 : 0), 0));
    }
    report.shards++;
    report.samples += index.samples;
    report.skippedEntries += skipped;
  }
  if (folder === null) return { ...report, dataset: null };
  const fieldNames = [...fields.keys()].sort();
  const named = fieldNames.map((name) => ({ name, samples: fields.get(name)! }));
  await writeManifest(folder, createManifest({ format: 'tar', classes: [], fields: named, columns: [], shards: records }));
  return { ...report, dataset: path.join(folder, MANIFEST_FILE) };
}

async function indexTar(tar: string): Promise<{ index: ShardIndex; record: ManifestShard; skipped: number }> {
  const source = await openSource(tar);
  try {
    let skipped = 0;
    const index = await buildShardIndex(await layoutOf('tar'), source, () => {
      skipped++;
    });
    const record = {
      file: path.basename(tar),
      bytes: source.size,
      samples: index.samples,
      crc32: crc32Hex(await fileCrc32(source)),
      maxSampleBytes: index.bytes.reduce((most, bytes) => Math.max(most, bytes), 0),
    };
    return { index, record, skipped };
  } finally {
    await source.close();
  }
}

async function isFolder(location: string): Promise<boolean> {
  return stat(location).then(
    (kind) => kind.isDirectory(),
    (cause: Error) => {
      throw new FileError({ path: location }, `${location} cannot be opened (${cause.message}).`, { cause });
    },
  );
}

async function tarsIn(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.tar')).sort();
  if (names.length === 0) throw new FileError({ path: folder }, `${folder} has no tar files to index.`);
  return names.map((name) => path.join(folder, name));
}

async function checkFree(paths: readonly string[]): Promise<void> {
  for (const file of paths) {
    if ((await stat(file).catch(() => null)) === null) continue;
    throw new OptionError({ path: file }, `${file} is there already; replace it with "overwrite" (--overwrite).`);
  }
}
