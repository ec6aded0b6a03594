/** The sample and the field that the name of an entry denotes. */
export interface SampleName {
  /** The key, with '/' between folders: `train/cat_1`. */
  readonly key: string;
  /** The field, without the leading dot: `jpg`, `seg.png`. */
  readonly field: string;
}

/**
 * Splits the name of an archive entry as WebDataset does (`base_plus_ext`): the folder and the base name up to its
 * first dot are the key, the rest in lower case is the field. Null for dotfiles and for names without a dot.
 */
export function splitEntryName(path: string): SampleName | null {
  const base = path.lastIndexOf('/') + 1;
  const dot = path.indexOf('.', base);
  if (dot <= base || dot === path.length - 1) return null;
  return { key: path.slice(0, dot), field: path.slice(dot + 1).toLowerCase() };
}

/**
 * Names the entry of a file to pack, so that two photos never merge: the field is the part after the last dot, in lower
 * case, or one of `compoundFields` (`seg.png`; the longest match); dots that remain in the stem become `_`.
 * `relativePath` has '/' between its folders, which stay in the key. Null for dotfiles and for names without a dot.
 */
export function packedName(relativePath: string, compoundFields: readonly string[] = []): SampleName | null {
  const base = relativePath.lastIndexOf('/') + 1;
  const name = relativePath.slice(base);
  const dot = fieldDot(name, compoundFields);
  if (dot <= 0 || dot === name.length - 1 || name.startsWith('.')) return null;
  const field = name.slice(dot + 1).toLowerCase();
  // Most names have no other dot.
  if (name.indexOf('.') === dot) return { key: relativePath.slice(0, base + dot), field };
  return { key: relativePath.slice(0, base) + name.slice(0, dot).replaceAll('.', '_'), field };
}

/** Whether `key.field` reads back as this key and this field. */
export function readsBack(key: string, field: string): boolean {
  const name = splitEntryName(`${key}.${field}`);
  return name !== null && name.key === key && name.field === field && !field.includes('/');
}

/** Why a name must not be joined to a folder, to continue "a name that ..."; null if it stays inside the folder. */
export function whyUnsafe(path: string): string | null {
  if (path === '') return 'is empty';
  if (path.includes('\0')) return 'holds a NUL';
  if (path.startsWith('/')) return 'is absolute';
  if (path.includes('..') && path.split('/').includes('..')) return 'leads out of its folder';
  return null;
}

/** The index of the dot before the field in a base name. */
function fieldDot(name: string, compoundFields: readonly string[]): number {
  let dot = name.lastIndexOf('.');
  for (const field of compoundFields) {
    const at = name.length - field.length - 1;
    if (at > 0 && at < dot && name[at] === '.' && name.slice(at + 1).toLowerCase() === field.toLowerCase()) dot = at;
  }
  return dot;
}
