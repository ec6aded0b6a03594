import { imageFields, packedName } from '@shardtool/format';

/**
 * The name of the file that a field of a sample is unpacked to. `source` is the file that the image was packed from, '' if it is
 * unknown. With a source, the image gets its original name (`IMG 0.JPG`, of key `IMG 0` and field `jpg`), and the other fields get
 * the same stem. Otherwise it is `KEY.FIELD`. `renamed` is the field of an image whose name did not fit its content.
 */
export function fileName(key: string, field: string, source: string, renamed: string | null = null): string {
  const named = packedName(source);
  if (named === null || named.key !== key) return `${key}.${field}`;
  if (named.field === field || field === renamed) return source;
  return `${source.slice(0, -named.field.length)}${field}`;
}

/**
 * The field of an image that is named by its content, because the extension of its source file does not fit the content. Null if
 * there is no such field. Only for images that were not re-encoded.
 */
export function renamedImage(fields: readonly string[], source: string): string | null {
  const named = packedName(source);
  if (named === null || fields.includes(named.field)) return null;
  return imageFields(fields)[0] ?? null;
}
