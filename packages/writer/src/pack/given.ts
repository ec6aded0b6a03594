import { checkLocation, OptionError, option, optionName, sentence } from '@shardtool/base';
import type { GivenOptions, PackOptions, PackSource, PairedFolder } from '../options.js';

/** The arguments of `pack`, with `pair` as text, as the command line and the record of a plan have it. */
interface GivenPack {
  readonly source: string;
  readonly options: GivenOptions;
}

/**
 * Reads the arguments of `pack`: the source as a path, a URL or `{ folder, list }`, and `pair` as objects. Throws {@link
 * OptionError}.
 */
export function givenPack(source: PackSource, options: PackOptions): GivenPack {
  const { folder, list } = sourceOf(source);
  const { pair, ...others } = options;
  if (list !== undefined && options.files !== undefined) {
    const message = sentence`The source has a list of files, and so has the option ${option('files')}: remove one of them.`;
    throw new OptionError({}, message);
  }
  const given = list === undefined ? others : { ...others, files: list };
  return { source: folder, options: pair === undefined ? given : { ...given, pair: pairsOf(pair) } };
}

function sourceOf(source: PackSource): { readonly folder: string; readonly list?: PackOptions['files'] } {
  if (typeof source !== 'object' || source === null || !('folder' in source)) {
    checkLocation('pack', source);
    return { folder: source };
  }
  const unknown = Object.keys(source).find((name) => name !== 'folder' && name !== 'list');
  if (unknown !== undefined) {
    throw new OptionError({}, `The source of a pack takes "folder" and "list", not ${JSON.stringify(unknown)}.`);
  }
  checkLocation('The source of a pack', source.folder);
  return source;
}

function pairsOf(pair: readonly PairedFolder[]): readonly string[] {
  if (!Array.isArray(pair)) {
    throw new OptionError(
      {},
      sentence`The option ${option('pair')} must be a list, such as [{ folder: "masks", field: "seg.png" }].`,
    );
  }
  return pair.map((one: unknown, i) => {
    const { folder, field, ...more } = (typeof one === 'object' && one !== null ? one : {}) as Partial<PairedFolder>;
    if (isName(folder) && isName(field) && Object.keys(more).length === 0) return `${folder}=${field}`;
    throw new OptionError(
      {},
      sentence`The option ${optionName(`pair.${i}`)} must have the name of a folder, not its path, and a field, such as { folder: "masks", field: "seg.png" }.`,
    );
  });
}

/** True for text that can be part of `masks=seg.png`, the form in the record of a plan. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[^=/\\]+$/.test(value);
}
