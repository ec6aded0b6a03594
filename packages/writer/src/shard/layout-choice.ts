import { OptionError, option, sentence } from '@shardtool/base';
import {
  isTableLayout,
  layoutOf,
  lmdbImages,
  type OutputLayout,
  type OutputLayoutName,
  type Table,
  type WrittenLayout,
  type WrittenLayoutName,
} from '@shardtool/format';
import type { LmdbValues } from '../options.js';

/** The layout that the options select. Unlike the layout itself it can be sent to a worker. */
export interface LayoutChoice {
  readonly format: WrittenLayoutName;
  readonly lmdbValues: LmdbValues;
}

/** The layout of a conversion, with the columns of all shards if the layout has columns. */
export interface OutputChoice extends Omit<LayoutChoice, 'format'> {
  readonly format: OutputLayoutName;
  readonly table: Table | null;
  /** Folder for shards until all are written, instead of the layout's own. */
  readonly shardFolder?: string | undefined;
}

/** Throws {@link OptionError} like {@link layoutOfChoice}. */
export async function outputLayoutOf({ format, lmdbValues, table, shardFolder }: OutputChoice): Promise<OutputLayout> {
  if (!isTableLayout(format)) return layoutOfChoice({ format, lmdbValues });
  checkLmdbValues(format, lmdbValues);
  const layout = (await layoutOf(format)).ofTable(table ?? { columns: [], classes: [] });
  return shardFolder === undefined ? layout : { ...layout, shardFolder };
}

/** Throws {@link OptionError} if `lmdbValues` is given for another layout. */
export async function layoutOfChoice({ format, lmdbValues }: LayoutChoice): Promise<WrittenLayout> {
  if (lmdbValues === 'sample') return layoutOf(format);
  checkLmdbValues(format, lmdbValues);
  return lmdbImages;
}

function checkLmdbValues(format: OutputLayoutName, lmdbValues: LmdbValues): void {
  if (lmdbValues === 'sample' || format === 'lmdb') return;
  throw new OptionError(
    {},
    sentence`The option ${option('lmdbValues')} requires the format lmdb, but the format is ${format}; remove it.`,
  );
}
