/** The type of a field's content, by its name. */
export type FieldType = 'bytes' | 'text' | 'integer' | 'json';

/** Types by extension, as in WebDataset's decoders (`webdataset.autodecode`). */
const TYPE_OF_EXTENSION: ReadonlyMap<string, FieldType> = new Map([
  ...['cls', 'cls2', 'class', 'count', 'index', 'inx', 'id'].map((name) => [name, 'integer'] as const),
  ...['txt', 'text', 'transcript'].map((name) => [name, 'text'] as const),
  ...['json', 'jsn'].map((name) => [name, 'json'] as const),
]);

/** The type that a field's name implies. The last extension decides: `seg.json` is JSON. */
export function fieldType(field: string): FieldType {
  return TYPE_OF_EXTENSION.get(field.slice(field.lastIndexOf('.') + 1)) ?? 'bytes';
}
