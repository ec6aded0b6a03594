import { layoutOf, lmdbImages, OptionError, type WrittenLayout, type WrittenLayoutName } from '@shardtool/format';

/** What an LMDB shard holds under a key: a msgpack map of the sample's fields, or its image alone. */
export type LmdbValues = 'sample' | 'image';

/** The layout that the options ask for; unlike the layout itself it can be sent to a worker. */
export interface LayoutChoice {
  readonly format: WrittenLayoutName;
  readonly lmdbValues: LmdbValues;
}

/** Throws {@link OptionError} where the values of LMDB are chosen for another layout. */
export async function layoutOfChoice({ format, lmdbValues }: LayoutChoice): Promise<WrittenLayout> {
  if (lmdbValues === 'sample') return layoutOf(format);
  if (format === 'lmdb') return lmdbImages;
  throw new OptionError(
    {},
    `The option "lmdbValues" is for the format lmdb, and the format is ${format}; leave it out.`,
  );
}
