import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isImageField, whyUnsafe } from '@shardtool/format';

/** The folder that the dataset was packed from. */
export class SourceFiles {
  readonly #root: string;

  constructor(root: string) {
    this.#root = path.resolve(root);
  }

  /**
   * What the file holds that a field was packed from, or may have been; null where there is none. `source` is the path of
   * the sample's image below the folder, '' where it is not known.
   */
  read(key: string, source: string, field: string): Uint8Array | null {
    for (const candidate of candidates(key, source, field)) {
      if (whyUnsafe(candidate) !== null) continue;
      try {
        return readFileSync(path.join(this.#root, candidate));
      } catch {
        // The next one may be there.
      }
    }
    return null;
  }
}

/** The image is the file itself, whatever its field is called; others stand beside it with the same stem. */
function candidates(key: string, source: string, field: string): string[] {
  const stem = source === '' ? key : source.replace(/\.[^./]*$/, '');
  const named = [`${stem}.${field}`, `${stem}.${field.toUpperCase()}`];
  return source !== '' && isImageField(field) ? [source] : named;
}
