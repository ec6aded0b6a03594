import type { FieldColumns, LoadedIndex } from '@shardtool/format';
import { matchingFields } from '../../dataset/fields/matching-fields.js';

/** A field of an index that is one of the images of its samples. */
interface RaggedColumn {
  readonly field: string;
  readonly column: FieldColumns;
}

const kept = new WeakMap<LoadedIndex, { readonly patterns: readonly string[]; readonly columns: RaggedColumn[] }>();

/**
 * The fields of an index that match the patterns of the option `images`, in their order. Cached for each index, because
 * every row requests them. Indexes of one dataset may have different fields.
 */
function raggedColumns(index: LoadedIndex, patterns: readonly string[]): readonly RaggedColumn[] {
  const found = kept.get(index);
  if (found?.patterns === patterns) return found.columns;
  const columns = matchingFields([...index.fields.keys()], patterns).map((field) => ({
    field,
    column: index.fields.get(field)!,
  }));
  kept.set(index, { patterns, columns });
  return columns;
}

/** The images that the sample in this row of the index has. */
export function raggedImagesIn(index: LoadedIndex, row: number, patterns: readonly string[]): RaggedColumn[] {
  return raggedColumns(index, patterns).filter(({ column }) => column.offset[row]! >= 0);
}
