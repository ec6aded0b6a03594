import { statSync } from 'node:fs';
import path from 'node:path';
import { FileError } from '@shardtool/base';
import { isImageField, whyUnsafe } from '@shardtool/format';
import { type Payload, payloadIn } from './payload.js';

/** The files that a dataset was packed from. */
export interface PackedFiles {
  /**
   * Returns the contents of the file that a field was packed from, or may have been; null if there is none. `source` is
   * the path of the sample's image below the source, '' if it is not known.
   */
  read(key: string, source: string, field: string): Payload | null | Promise<Payload | null>;
}

/** The folder that the dataset was packed from. */
export class PackedFolder implements PackedFiles {
  readonly #root: string;

  constructor(root: string) {
    this.#root = path.resolve(root);
  }

  read(key: string, source: string, field: string): Payload | null {
    for (const candidate of candidates(key, source, field)) {
      if (whyUnsafe(candidate) !== null) continue;
      const file = path.join(this.#root, candidate);
      const stats = statSync(file, { throwIfNoEntry: false });
      if (stats?.isFile() !== true) continue;
      try {
        return payloadIn(file, 0, stats.size);
      } catch (error) {
        // The next candidate may exist.
        if (!(error instanceof FileError)) throw error;
      }
    }
    return null;
  }
}

/** The image is the file itself, whatever its field. Other fields are files next to it with the same stem. */
export function candidates(key: string, source: string, field: string): string[] {
  const stem = source === '' ? key : source.replace(/\.[^./]*$/, '');
  const named = [`${stem}.${field}`, `${stem}.${field.toUpperCase()}`];
  return source !== '' && isImageField(field) ? [source] : named;
}
