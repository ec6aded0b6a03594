import { partitionPoint } from '@shardtool/base';
import { type FieldColumns, isImageField, type Manifest } from '@shardtool/format';
import type { CheckedOptions } from '../../options.js';
import { type Grouping, groupFiles } from '../../plan/grouping.js';
import { Naming } from '../../plan/naming.js';
import { OUTCOME } from '../../plan/outcomes.js';
import { OBJECTS_FIELD } from '../../source/labels/objects.js';
import type { SourceFiles } from '../../source/source-files.js';

/** A file next to an image that becomes a field of its sample, such as a mask. */
export interface FieldFile {
  readonly file: number;
  readonly field: string;
}

/** Fields that do not come from a file next to the image, or may not. */
const MADE = new Set(['cls', OBJECTS_FIELD]);

/** The files next to images, grouped as in a pack of the whole source. */
export class PackedFields {
  readonly #grouping: Grouping;
  readonly #naming: Naming;
  readonly #reader: ReturnType<SourceFiles['reader']>;

  private constructor(grouping: Grouping, naming: Naming, files: SourceFiles) {
    this.#grouping = grouping;
    this.#naming = naming;
    this.#reader = files.reader();
  }

  /** Returns null if no sample of the dataset has a field that comes from such a file. Then the files are not grouped. */
  static of(
    files: SourceFiles,
    { fields }: Manifest,
    options: CheckedOptions,
    ownFiles: ReadonlySet<number>,
  ): PackedFields | null {
    if (fields.every(({ name }) => !isExtra(name))) return null;
    const naming = new Naming(options);
    const imageOutcome = () => OUTCOME.packed;
    const isLabels = (file: number) => ownFiles.has(file);
    const { grouping } = groupFiles(files, { naming, imageOutcome, isLabels, onCollision: 'quarantine' });
    return new PackedFields(grouping, naming, files);
  }

  /** Returns the files next to the image with this number in the source. */
  ofImage(image: number): FieldFile[] {
    const { samples, fileStart, files } = this.#grouping;
    // Samples are in the order of their images.
    const sample = partitionPoint(0, samples, (at) => files[fileStart[at]!]! < image);
    if (sample === samples || files[fileStart[sample]!] !== image) return [];
    return Array.from(files.subarray(fileStart[sample]! + 1, fileStart[sample + 1]!), (file) => ({
      file,
      field: this.#naming.fieldOf(this.#reader.path(file)),
    })).filter(({ field }) => !MADE.has(field));
  }
}

/** True for a field that comes from a file next to an image. */
function isExtra(field: string): boolean {
  return !MADE.has(field) && (!isImageField(field) || field.includes('.'));
}

/** The fields of a row that come from files next to its image, with their columns. */
export function extraFields(
  fields: ReadonlyMap<string, FieldColumns>,
  row: number,
): Map<string, { readonly bytes: number; readonly crc32: number | undefined }> {
  return new Map(
    [...fields]
      .filter(([name, { offset }]) => isExtra(name) && offset[row]! >= 0)
      .map(([name, { bytes, crc32 }]) => [name, { bytes: bytes[row]!, crc32: crc32?.[row] }]),
  );
}
