import { OptionError } from '@shardtool/base';
import { packedName, type SampleName } from '@shardtool/format';

/** The options that say which files belong together. */
export interface NamingOptions {
  /** Endings of files that belong to the image with the same stem: `seg.png`, or without a dot in front `_mask.png`. */
  readonly fields: readonly string[];
  /** Folders whose files belong to images in the folder beside: `masks=seg.png`. */
  readonly pair?: readonly string[] | undefined;
}

/** A file that belongs to an image which has another stem, or lies elsewhere. */
export interface ExtraField {
  /** Its field in the sample of that image. */
  readonly field: string;
  /** The option that says so, as it was given. */
  readonly rule: string;
  /** The path of the image without its ending; of a file in a paired folder, from that folder on, and null where its ending is not the one that was given. */
  readonly stem: string | null;
  /** Of a file in a paired folder: what lies in front of that folder, with a "/" at its end. */
  readonly above: string | null;
}

interface Pair {
  readonly rule: string;
  readonly folder: string;
  readonly field: string;
  /** Endings of its files, of which the first that fits counts. */
  readonly endings: readonly string[];
}

/** An ending that is no field by itself: what stands in front of it is the stem. */
const SUFFIX = /^[_-]+/;

/** How paths below a source become keys and fields. Pure: the same in every thread. */
export class Naming {
  /** Endings, each behind a dot the field of that name. */
  readonly fields: readonly string[];
  readonly #isSidecar: ReadonlySet<string>;
  readonly #suffixes: readonly string[];
  readonly #pairs: readonly Pair[];

  /** Throws {@link OptionError} for a pair that is none. */
  constructor({ fields, pair = [] }: NamingOptions) {
    this.fields = fields;
    this.#isSidecar = new Set(this.fields);
    this.#suffixes = fields.filter((field) => SUFFIX.test(field)).toSorted((a, b) => b.length - a.length);
    this.#pairs = pair.map(parsePair);
  }

  /** What files with an ending are called in their sample. */
  static fieldOfExtension(ending: string): string {
    return ending.replace(SUFFIX, '');
  }

  /** Whether files may belong to images of other stems, or in other folders. */
  get hasExtraFields(): boolean {
    return this.#suffixes.length + this.#pairs.length > 0;
  }

  /** All that was given, as it was given. */
  get rules(): readonly string[] {
    return [...this.fields, ...this.#pairs.map(({ rule }) => rule)];
  }

  /** See {@link packedName}. */
  nameOf(path: string): SampleName | null {
    return packedName(path, this.fields);
  }

  /** The key of an image. */
  keyOf(image: string): string {
    return this.nameOf(image)!.key;
  }

  /** What a file of a sample is called there. */
  fieldOf(path: string): string {
    return this.extraFieldOf(path)?.field ?? this.nameOf(path)!.field;
  }

  /** Whether a file with this field is never the image of a sample. */
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
      // Behind a dot it is a field as any other: 1.__proto__.png.
      if (stem !== null && !stem.endsWith('.'))
        return { field: Naming.fieldOfExtension(suffix), rule: suffix, above: null, stem };
    }
    return null;
  }

  /** Whether a folder right below `above` holds what belongs to the images of another one. */
  isPaired(folder: string): boolean {
    return this.#pairs.some((pair) => pair.folder === folder);
  }
}

/** The path without the first ending that it has, where a name is left. */
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
      `The option "pair" says a folder and a field, as masks=seg.png, and not "${rule}": the files in masks then belong to the images in the folder beside it.`,
    );
  }
  const ending = given.toLowerCase();
  const field = ending.replace(SUFFIX, '');
  const last = ending.slice(ending.lastIndexOf('.') + 1);
  const endings = ending === field ? [`.${field}`, `.${last}`] : [ending];
  return { rule, folder, field, endings };
}
