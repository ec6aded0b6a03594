import { OptionError } from '@shardtool/base';
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

/** What an LMDB shard holds under a key: a msgpack map of the sample's fields, or its image alone. */
export type LmdbValues = 'sample' | 'image';

/** The layout that the options ask for; unlike the layout itself it can be sent to a worker. */
export interface LayoutChoice {
  readonly format: WrittenLayoutName;
  readonly lmdbValues: LmdbValues;
}

/** The same of a conversion, with the columns that all shards are to have where the layout has columns. */
export interface OutputChoice extends Omit<LayoutChoice, 'format'> {
  readonly format: OutputLayoutName;
  readonly table: Table | null;
  /** Where shards lie until all are there, instead of where the layout has them. */
  readonly shardFolder?: string | undefined;
}

/** Throws {@link OptionError} as {@link layoutOfChoice} does. */
export async function outputLayoutOf({ format, lmdbValues, table, shardFolder }: OutputChoice): Promise<OutputLayout> {
  if (!isTableLayout(format)) return layoutOfChoice({ format, lmdbValues });
  checkLmdbValues(format, lmdbValues);
  const layout = (await layoutOf(format)).ofTable(table ?? { columns: [], classes: [] });
  return shardFolder === undefined ? layout : { ...layout, shardFolder };
}

/** Throws {@link OptionError} where the values of LMDB are chosen for another layout. */
export async function layoutOfChoice({ format, lmdbValues }: LayoutChoice): Promise<WrittenLayout> {
  if (lmdbValues === 'sample') return layoutOf(format);
  checkLmdbValues(format, lmdbValues);
  return lmdbImages;
}

function checkLmdbValues(format: OutputLayoutName, lmdbValues: LmdbValues): void {
  if (lmdbValues === 'sample' || format === 'lmdb') return;
  throw new OptionError(
    {},
    `The option "lmdbValues" is for the format lmdb, and the format is ${format}; leave it out.`,
  );
}
