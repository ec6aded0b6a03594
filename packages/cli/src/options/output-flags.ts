import { escapeControls } from '@shardtool/base/text';
import type { OpenOptions } from '@shardtool/reader';
import { OUTPUT_OPTIONS } from '@shardtool/writer/option-table';
import type { FlagSpec } from '../command.js';
import { countOf } from '../terminal/size.js';
import { flagsOf } from './option-flags.js';

export const QUIET_FLAG = {
  type: 'boolean',
  alias: 'q',
  default: false,
  group: 'General',
  describe: 'Print nothing unless something is wrong',
} as const satisfies FlagSpec;

/** Options of every command that writes shards. */
export const OUTPUT_FLAGS = {
  ...flagsOf(OUTPUT_OPTIONS),
  quiet: QUIET_FLAG,
} as const;

/** `--copy` of commands that define a part or another view of a dataset. */
export const COPY_FLAG = {
  type: 'string',
  requiresArg: true,
  group: 'Output',
  placeholder: 'FOLDER',
  describe: 'Also copy the samples into new shards in this folder; images are not re-encoded',
} as const satisfies FlagSpec;

/** Copies a view of a dataset into a new dataset of the same format. Returns a line about it. */
export async function copyView(location: string, view: OpenOptions, output: string): Promise<string> {
  const [{ openDataset }, { convert }] = await Promise.all([import('@shardtool/reader'), import('@shardtool/writer')]);
  const dataset = await openDataset(location, view);
  await dataset.close();
  const format = dataset.format === 'lmdb' || dataset.format === 'msgpack' ? dataset.format : 'tar';
  const { samples, shards } = await convert(location, output, { ...view, format });
  return `Copied ${countOf(samples, 'sample')} in ${countOf(shards, 'shard')} to ${escapeControls(output)}.`;
}
