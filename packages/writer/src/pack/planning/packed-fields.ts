import { partitionPoint } from '@shardtool/base';
import { type FieldColumns, isImageField, type Manifest } from '@shardtool/format';
import type { CheckedOptions } from '../../options.js';
import { type Grouping, groupFiles } from '../../plan/grouping.js';
import { Naming } from '../../plan/naming.js';
import { OUTCOME } from '../../plan/outcomes.js';
import { OBJECT_COUNTS, OBJECTS_FIELD } from '../../source/labels/objects.js';
import type { SourceFiles } from '../../source/source-files.js';

/** A file next to an image that becomes a field of its sample, such as a mask. */
export interface FieldFile {
  readonly file: number;
  readonly field: string;
}

/** The files next to images, grouped as in a pack of the whole source. */
export class PackedFields {
  readonly #grouping: Grouping;
  readonly #naming: Naming;
  readonly #reader: ReturnType<SourceFiles['reader']>;
  readonly #made: ReadonlySet<string>;

  private constructor(grouping: Grouping, naming: Naming, files: SourceFiles, made: ReadonlySet<string>) {
    this.#grouping = grouping;
    this.#naming = naming;
    this.#reader = files.reader();
    this.#made = made;
  }

  /** Returns null if neither the dataset nor the source has such files. Then the files are not grouped. */
  static of(
    files: SourceFiles,
    manifest: Manifest,
    options: CheckedOptions,
    ownFiles: ReadonlySet<number>,
  ): PackedFields | null {
    const naming = new Naming(options);
    const made = madeFields(manifest, options);
    const isPacked = manifest.fields.some(({ name }) => isExtra(name, made));
    if (!isPacked && hasOnlyImages(files, naming, ownFiles)) return null;
    const imageOutcome = () => OUTCOME.packed;
    const isLabels = (file: number) => ownFiles.has(file);
    const { grouping } = groupFiles(files, { naming, imageOutcome, isLabels, onCollision: 'quarantine' });
    return new PackedFields(grouping, naming, files, made);
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
    })).filter(({ field }) => !this.#made.has(field));
  }

  /** Returns the fields of a row that come from files next to its image, with their columns. */
  ofRow(
    fields: ReadonlyMap<string, FieldColumns>,
    row: number,
  ): Map<string, { readonly bytes: number; readonly crc32: number | undefined }> {
    return new Map(
      [...fields]
        .filter(([name, { offset }]) => isExtra(name, this.#made) && offset[row]! >= 0)
        .map(([name, { bytes, crc32 }]) => [name, { bytes: bytes[row]!, crc32: crc32?.[row] }]),
    );
  }
}

/** Fields that do not come from a file next to the image: the class, and the objects of annotations. */
function madeFields({ columns }: Manifest, { coco, yolo }: CheckedOptions): ReadonlySet<string> {
  const hasObjects = coco !== undefined || yolo !== undefined || columns.some(({ name }) => name === OBJECT_COUNTS);
  return new Set(hasObjects ? ['cls', OBJECTS_FIELD] : ['cls']);
}

/** True for a field that comes from a file next to an image. `made`: fields that do not. */
function isExtra(field: string, made: ReadonlySet<string>): boolean {
  return !made.has(field) && (!isImageField(field) || field.includes('.'));
}

/** True if no file of the source can be a field next to an image. */
function hasOnlyImages(files: SourceFiles, naming: Naming, ownFiles: ReadonlySet<number>): boolean {
  const reader = files.reader();
  for (let file = 0; file < files.count; file++) {
    const path = reader.path(file);
    if (ownFiles.has(file)) continue;
    if (naming.extraFieldOf(path) !== null) return false;
    const name = naming.nameOf(path);
    if (name !== null && !naming.makesSample(name.field)) return false;
  }
  return true;
}
