import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { indexPathOf, readShardIndex } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import { type CheckedOptions, changesBytes } from '../options.js';
import { CHANGED_FILE, writeListFile } from '../output/lists.js';
import { Naming } from '../plan/naming.js';
import type { SourceChanges } from '../plan/plan-record.js';
import type { SourceFiles } from '../source/source-files.js';
import type { AppendBase } from './append.js';

/** A line of changed.jsonl. */
interface ChangedFile {
  /** Below the source. */
  readonly path: string;
  readonly what: 'changed' | 'gone';
  readonly reason: string;
}

/**
 * Lists the images of a dataset whose files have changed since they were packed, or are gone, and counts them. What was changed
 * and has its old size and an older time is not seen: nothing is read.
 */
export async function listChanges(
  base: AppendBase,
  root: string,
  files: SourceFiles,
  options: CheckedOptions,
): Promise<SourceChanges | undefined> {
  const count = { changed: 0, gone: 0 };
  let first: string | undefined;
  async function* counted(): AsyncGenerator<ChangedFile> {
    for await (const file of changedFiles(base, root, files, options)) {
      count[file.what]++;
      first ??= file.path;
      yield file;
    }
  }
  await writeListFile(base.folder, CHANGED_FILE, counted());
  return first === undefined ? undefined : { ...count, first };
}

async function* changedFiles(
  { folder, manifest }: AppendBase,
  root: string,
  files: SourceFiles,
  options: CheckedOptions,
): AsyncGenerator<ChangedFile> {
  const naming = new Naming(options);
  const reader = files.reader();
  const isOther = changesBytes(options);
  const isList = options.files !== undefined;
  for (const { file } of manifest.shards) {
    const path = join(folder, file);
    const packedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
    const { source, fields } = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['source', 'fields'] });
    for (let row = 0; row < source.length; row++) {
      const name = source[row]!;
      const number = reader.find(name);
      if (number === -1) {
        // A list, and patterns, name a part of the files.
        if (!isList && !isRemote(root) && !existsSync(root + name))
          yield { path: name, what: 'gone', reason: 'it is no longer in the source' };
        continue;
      }
      const stored = isOther ? undefined : fields.get(naming.fieldOf(name))?.bytes[row];
      const bytes = reader.bytes(number);
      if (stored !== undefined && stored >= 0 && bytes !== stored) {
        yield {
          path: name,
          what: 'changed',
          reason: `it had ${stored} bytes when it was packed, and has ${bytes} now`,
        };
      } else if (reader.mtimeMs(number) > packedAt) {
        const reason = `it is of ${new Date(reader.mtimeMs(number)).toISOString()}, later than its shard`;
        yield { path: name, what: 'changed', reason };
      }
    }
  }
}
