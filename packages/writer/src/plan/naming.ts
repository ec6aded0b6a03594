import { OptionError, option, sentence } from '@shardtool/base';
import { isImageExtension, isImageField, packedName, type SampleName } from '@shardtool/format';

/** Options that define which files belong together. */
export interface NamingOptions {
  /**
   * Extensions of files that belong to the image with the same stem: `seg.png`, or without a leading dot `_mask.png`.
   */
  readonly fields: readonly string[];
  /** Folders whose files belong to images in a folder next to them: `masks=seg.png`. */
  readonly pair?: readonly string[] | undefined;
  /** For samples without images: the field that every sample has, which takes the place of the image. */
  readonly primary?: string | undefined;
}

/** A file that belongs to an image with another stem or in another folder. */
export interface ExtraField {
  /** Field of the file in the sample of that image. */
  readonly field: string;
  /** The option value that matched, as it was given. */
  readonly rule: string;
  /**
   * Path of the image without its extension. For a file in a paired folder it is relative to that folder, and null if
   * the file does not have the extension of the rule.
   */
  readonly stem: string | null;
  /** For a file in a paired folder: the path in front of that folder, with a trailing "/". */
  readonly above: string | null;
}

interface Pair {
  readonly rule: string;
  readonly folder: string;
  readonly field: string;
  /** Extensions of its files. The first that matches counts. */
  readonly endings: readonly string[];
}

/** Start of an extension that is not a field by itself: the text in front of it is the stem. */
const SUFFIX = /^[_-]+/;

/** Rules by which paths below a source become keys and fields. Pure: the same in every thread. */
export class Naming {
  /** Extensions that follow a dot and become the field of that name. */
  readonly fields: readonly string[];
  /** The field that every sample has, if samples have no images. */
  readonly primary: string | null;
  /** Fields with dots in their names. */
  readonly #compound: readonly string[];
  readonly #isSidecar: ReadonlySet<string>;
  readonly #suffixes: readonly string[];
  readonly #pairs: readonly Pair[];

  /** Throws {@link OptionError} for an invalid pair. */
  constructor({ fields, pair = [], primary }: NamingOptions) {
    this.fields = fields;
    this.primary = primary ?? null;
    this.#compound = primary === undefined ? fields : [...fields, primary];
    this.#isSidecar = new Set(fields.filter((field) => field !== primary));
    this.#suffixes = fields.filter((field) => SUFFIX.test(field)).toSorted((a, b) => b.length - a.length);
    this.#pairs = pair.map(parsePair);
  }

  /** Field in a sample for files with this extension. */
  static fieldOfExtension(ending: string): string {
    return ending.replace(SUFFIX, '');
  }

  /** True if files may belong to images with other stems or in other folders. */
  get hasExtraFields(): boolean {
    return this.#suffixes.length + this.#pairs.length > 0;
  }

  /** All rules, as they were given. */
  get rules(): readonly string[] {
    return [...this.fields, ...this.#pairs.map(({ rule }) => rule)];
  }

  /** See {@link packedName}. */
  nameOf(path: string): SampleName | null {
    return packedName(path, this.#compound);
  }

  /** Key of an image. */
  keyOf(image: string): string {
    return this.nameOf(image)!.key;
  }

  /** Field of a file in its sample. */
  fieldOf(path: string): string {
    return this.extraFieldOf(path)?.field ?? this.nameOf(path)!.field;
  }

  /** True if a file with this field makes a sample, or would if its kind of image were supported. */
  makesSample(field: string): boolean {
    return !this.isSidecar(field) && (this.primary === null ? isImageExtension(field) : field === this.primary);
  }

  /** True if a file with this field can be the image of a sample, or the field that replaces it. */
  canBeImage(field: string): boolean {
    return this.primary === null ? isImageField(field) : field === this.primary;
  }

  /** True if a file with this field is never the image of a sample. */
  isSidecar(field: string): boolean {
    return this.#isSidecar.has(field);
  }

  extraFieldOf(path: string): ExtraField | null {
    if (!this.hasExtraFields) return null;
    for (const { rule, folder, field, endings } of this.#pairs) {
      const at = path.startsWith(`${folder}/`) ? 0 : path.indexOf(`/${folder}/`) + 1;
      if (at === 0 && !path.startsWith(`${folder}/`)) continue;
      const rest = path.slice(at + folder.length + 1);
      return { field, rule, above: path.slice(0, at), stem: stemBefore(rest, endings) };
    }
    for (const suffix of this.#suffixes) {
      const stem = stemBefore(path, [suffix]);
      // After a dot it is a field like any other: 1.__proto__.png.
      if (stem !== null && !stem.endsWith('.'))
        return { field: Naming.fieldOfExtension(suffix), rule: suffix, above: null, stem };
    }
    return null;
  }

  /** True if a folder right below `above` is a paired folder, whose files belong to images elsewhere. */
  isPaired(folder: string): boolean {
    return this.#pairs.some((pair) => pair.folder === folder);
  }
}

/** The path without the first extension that matches, if that leaves a name; otherwise null. */
function stemBefore(path: string, endings: readonly string[]): string | null {
  const lower = path.toLowerCase();
  const ending = endings.find((candidate) => lower.endsWith(candidate));
  if (ending === undefined) return null;
  const stem = path.slice(0, -ending.length);
  return stem === '' || stem.endsWith('/') ? null : stem;
}

function parsePair(rule: string): Pair {
  const [, folder, given] = /^([^=/\\]+)=([^=/\\]+)$/.exec(rule) ?? [];
  if (folder === undefined || given === undefined || !/^[_-]*[^._-][^/\\]*$/.test(given)) {
    throw new OptionError(
      {},
      sentence`The option ${option('pair')} must be a folder and a field, such as masks=seg.png, not "${rule}". The files in masks then belong to the images in a folder next to it.`,
    );
  }
  const ending = given.toLowerCase();
  const field = ending.replace(SUFFIX, '');
  const last = ending.slice(ending.lastIndexOf('.') + 1);
  const endings = ending === field ? [`.${field}`, `.${last}`] : [ending];
  return { rule, folder, field, endings };
}
