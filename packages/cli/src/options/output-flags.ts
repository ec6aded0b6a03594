import { escapeControls } from '@shardtool/base/text';
import type { OpenOptions } from '@shardtool/reader';
import { OUTPUT_OPTIONS } from '@shardtool/writer/option-table';
import { countOf } from '../terminal/size.js';
import { flagsOf } from './option-flags.js';

export const QUIET_FLAG = {
  type: 'boolean',
  alias: 'q',
  default: false,
  describe: 'Print nothing when all is well',
} as const;

/** The flags of every command that writes shards. */
export const OUTPUT_FLAGS = {
  ...flagsOf(OUTPUT_OPTIONS),
  json: { type: 'boolean', default: false, describe: 'The report as one JSON object' },
  quiet: QUIET_FLAG,
} as const;

/** `--copy OUT` of commands that name a part or another view of a dataset. */
export const COPY_FLAG = {
  type: 'string',
  requiresArg: true,
  describe: 'Also write it as shards of its own into this folder; bytes are copied, images not encoded',
} as const;

/** Writes what a view shows as a dataset of its own, in the layout that the dataset has. Returns what is to be printed of it. */
export async function copyView(location: string, view: OpenOptions, output: string): Promise<string> {
  const [{ openDataset }, { convert }] = await Promise.all([import('@shardtool/reader'), import('@shardtool/writer')]);
  const dataset = await openDataset(location, view);
  await dataset.close();
  const format = dataset.format === 'lmdb' || dataset.format === 'msgpack' ? dataset.format : 'tar';
  const { samples, shards } = await convert(location, output, { ...view, format });
  return `Copied ${countOf(samples, 'sample')} in ${countOf(shards, 'shard')} to ${escapeControls(output)}.`;
}
