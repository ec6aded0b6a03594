import { OptionError, option, sentence, sortByCodePoint } from '@shardtool/base';
import { sortedByValue } from '@shardtool/format';
import { LabelsError } from '../errors.js';

/**
 * Class of a path below a source, or of a key: its first folder. Folders right below the source that hold the images of
 * paired folders (`imageFolders`) are skipped. Undefined if there is no class.
 */
export function folderClass(path: string, imageFolders: ReadonlySet<string> = NO_FOLDERS): string | undefined {
  const from = path.startsWith('./') ? 2 : 0;
  const slash = path.indexOf('/', from);
  if (slash === -1) return undefined;
  const folder = path.slice(from, slash);
  return imageFolders.has(folder) ? folderClass(path.slice(slash + 1)) : folder;
}

const NO_FOLDERS: ReadonlySet<string> = new Set();

/** If all labels are whole numbers up to this limit, they are the class numbers. */
const LARGEST_NUMBER = 99_999;
const WHOLE_NUMBER = /^(0|[1-9]\d*)$/;

/**
 * Class names in the order of their numbers, sorted by code point like torchvision's `ImageFolder.find_classes`. Labels
 * that are all whole numbers are the class numbers themselves; other numbers are sorted by value.
 */
export function orderClasses(names: string[], fromLabels: boolean): string[] {
  if (!fromLabels || names.length === 0 || !names.every((name) => WHOLE_NUMBER.test(name)))
    return byOrder(names, fromLabels);
  const largest = names.reduce((max, name) => Math.max(max, Number(name)), 0);
  if (largest > LARGEST_NUMBER) {
    throw new OptionError(
      {},
      sentence`The labels have the class ${largest}; class numbers go up to ${LARGEST_NUMBER}, so list the classes with the option ${option('classes')}.`,
    );
  }
  return Array.from({ length: largest + 1 }, (_, number) => String(number));
}

/**
 * Classes of a dataset that grows: existing classes keep their numbers, and new ones are sorted and added after them.
 */
export function addClasses(known: readonly string[], names: string[], fromLabels: boolean): string[] {
  const isKnown = new Set(known);
  const added = names.filter((name) => !isKnown.has(name));
  // Numeric labels remain their own class numbers.
  const all = orderClasses([...known, ...added], fromLabels);
  return known.every((name, number) => all[number] === name) ? all : [...known, ...byOrder(added, fromLabels)];
}

function byOrder(names: string[], fromLabels: boolean): string[] {
  return (fromLabels ? sortedByValue(names) : null) ?? sortByCodePoint(names);
}

/** Checks a list of classes given by the user. `location` is the file that it was read from, if any. */
export function checkClasses(names: readonly string[], location?: string): readonly string[] {
  const seen = new Map<string, number>();
  for (const [number, name] of names.entries()) {
    const first = seen.get(name);
    const where = location === undefined ? 'The list of classes' : `${location}:${number + 1}`;
    if (name === '') throw new LabelsError({ path: location, line: number + 1 }, `${where} has an empty name.`);
    if (first !== undefined) {
      throw new LabelsError(
        { path: location, line: number + 1 },
        `${where} repeats the class "${name}", which is already class ${first}; remove one of them.`,
      );
    }
    seen.set(name, number);
  }
  return names;
}
