import path from 'node:path';
import {
  buildShardIndex,
  FileError,
  identityOf,
  keptIndexPath,
  layoutOf,
  openSource,
  readShardIndex,
  type ShardIndex,
} from '@shardtool/format';
import type { DatasetParts } from './dataset.js';
import type { ShardFile } from './shard-files.js';

/** Tars are opened so many at a time. */
const CONCURRENCY = 4;

/** Tars that other software wrote, as a dataset. Class numbers are those of their `cls` fields, without names. */
export async function foreignParts(tars: readonly string[]): Promise<DatasetParts> {
  if (tars.length === 0) throw new FileError({}, 'No shards were given: name a folder of shards, or tar files.');
  const shards = await openAll(tars);
  const classSamples: number[] = [];
  const fields = new Set<string>();
  for (const { contents } of shards) {
    for (const cls of contents.cls) if (cls >= 0) classSamples[cls] = (classSamples[cls] ?? 0) + 1;
    for (const name of contents.fields.keys()) fields.add(name);
  }
  return {
    location: tars[0]!,
    format: 'tar',
    identity: identityOf(
      shards.map(({ file, contents }) => ({ file: file.name, samples: file.samples, crc32: contentOf(contents) })),
    ),
    classes: [],
    classSamples: Array.from(classSamples, (samples) => samples ?? 0),
    fields: [...fields].sort(),
    shards: shards.map(({ file }) => file),
  };
}

/** What of an index the dataset as a whole is made of. */
type Contents = Pick<ShardIndex, 'samples' | 'fields' | 'cls'>;

interface ForeignShard {
  readonly file: ShardFile;
  readonly contents: Contents;
}

async function openAll(tars: readonly string[]): Promise<ForeignShard[]> {
  const shards: ForeignShard[] = [];
  for (let first = 0; first < tars.length; first += CONCURRENCY) {
    shards.push(...(await Promise.all(tars.slice(first, first + CONCURRENCY).map(openForeign))));
  }
  return shards;
}

/** With the index that is kept beside the tar, else with one that is made now and stays in memory. */
async function openForeign(tar: string): Promise<ForeignShard> {
  const source = await openSource(tar);
  try {
    const indexPath = await keptIndexPath(tar);
    const name = path.basename(tar);
    const bytes = source.size;
    if (indexPath === null) {
      const index = await buildShardIndex(await layoutOf('tar'), source);
      const { samples } = index;
      return {
        file: { name, path: tar, bytes, samples, loadIndex: async () => index, loadParts: async () => index },
        contents: index,
      };
    }
    const contents = await readShardIndex(indexPath, { parts: ['fields', 'cls'] });
    return {
      file: {
        name,
        path: tar,
        bytes,
        samples: contents.samples,
        loadIndex: () => readShardIndex(indexPath),
        loadParts: (parts) => readShardIndex(indexPath, { parts }),
      },
      contents,
    };
  } finally {
    await source.close();
  }
}

/** Changes when a sample does: the checksums of all fields. */
function contentOf({ fields }: Contents): string {
  const sums = [...fields.values()].map(({ crc32 }) => crc32.reduce((sum, value) => (sum * 31 + value) % 2 ** 32, 7));
  return sums.join('-');
}
