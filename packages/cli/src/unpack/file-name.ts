import { packedName } from '@shardtool/format';

/**
 * The name of the file that a field of a sample is unpacked to. `source` is the file that the image was packed from, '' where
 * nobody knows: with it the image has its own name back (`IMG 0.JPG`, of key `IMG 0` and field `jpg`), and what lay beside
 * it has the same stem. Else it is `KEY.FIELD`.
 */
export function fileName(key: string, field: string, source: string): string {
  const named = packedName(source);
  if (named === null || named.key !== key) return `${key}.${field}`;
  if (named.field === field) return source;
  return `${source.slice(0, -named.field.length)}${field}`;
}
