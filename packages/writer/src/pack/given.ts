import { checkLocation, OptionError, option, optionName, sentence } from '@shardtool/base';
import type { GivenOptions, PackOptions, PackSource, PairedFolder } from '../options.js';

/** What `pack` was asked for, with `pair` as the command line and the record of a plan have it. */
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
    const message = sentence`The source has a list of files, and the option ${option('files')} is another one: remove one of them.`;
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
    throw new OptionError({}, `The source of a pack has no ${JSON.stringify(unknown)}; there are "folder" and "list".`);
  }
  checkLocation('The source of a pack', source.folder);
  return source;
}

function pairsOf(pair: readonly PairedFolder[]): readonly string[] {
  if (!Array.isArray(pair)) {
    throw new OptionError(
      {},
      sentence`The option ${option('pair')} is a list, such as [{ folder: "masks", field: "seg.png" }].`,
    );
  }
  return pair.map((one: unknown, i) => {
    const { folder, field, ...more } = (typeof one === 'object' && one !== null ? one : {}) as Partial<PairedFolder>;
    if (isName(folder) && isName(field) && Object.keys(more).length === 0) return `${folder}=${field}`;
    throw new OptionError(
      {},
      sentence`The option ${optionName(`pair.${i}`)} is a folder by its name alone and a field, such as { folder: "masks", field: "seg.png" }.`,
    );
  });
}

/** True for text that the record of a plan can hold: it has them as `masks=seg.png`. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[^=/\\]+$/.test(value);
}
