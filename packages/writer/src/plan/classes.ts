import { OptionError } from '@shardtool/base';
import { sortedByValue } from '@shardtool/format';
import { LabelsError } from '../errors.js';
import { sortByCodePoint } from '../source/file-table.js';

/**
 * The class of a path below a source, and of a key: the first folder, but for those that hold the images of paired folders
 * (`imageFolders`, right below the source). Undefined where there is none.
 */
export function folderClass(path: string, imageFolders: ReadonlySet<string> = NO_FOLDERS): string | undefined {
  const from = path.startsWith('./') ? 2 : 0;
  const slash = path.indexOf('/', from);
  if (slash === -1) return undefined;
  const folder = path.slice(from, slash);
  return imageFolders.has(folder) ? folderClass(path.slice(slash + 1)) : folder;
}

const NO_FOLDERS: ReadonlySet<string> = new Set();

/** Class numbers up to this stand for themselves when the labels are numbers. */
const LARGEST_NUMBER = 99_999;
const WHOLE_NUMBER = /^(0|[1-9]\d*)$/;

/**
 * The names of the classes in the order of their numbers: sorted by code point, as torchvision's
 * `ImageFolder.find_classes` does. Labels that are all whole numbers are the class numbers themselves, and other numbers are
 * sorted by their values.
 */
export function orderClasses(names: string[], fromLabels: boolean): string[] {
  if (!fromLabels || names.length === 0 || !names.every((name) => WHOLE_NUMBER.test(name)))
    return byOrder(names, fromLabels);
  const largest = names.reduce((most, name) => Math.max(most, Number(name)), 0);
  if (largest > LARGEST_NUMBER) {
    throw new OptionError(
      {},
      `The labels have the class ${largest}; numbers above ${LARGEST_NUMBER} are no class numbers, so list the classes with "classes".`,
    );
  }
  return Array.from({ length: largest + 1 }, (_, number) => String(number));
}

/**
 * The classes of a dataset that grows: those that it has keep their numbers, new ones come behind them in their order.
 */
export function addClasses(known: readonly string[], names: string[], fromLabels: boolean): string[] {
  const isKnown = new Set(known);
  const added = names.filter((name) => !isKnown.has(name));
  // Numbers stay the numbers that they name.
  const all = orderClasses([...known, ...added], fromLabels);
  return known.every((name, number) => all[number] === name) ? all : [...known, ...byOrder(added, fromLabels)];
}

function byOrder(names: string[], fromLabels: boolean): string[] {
  return (fromLabels ? sortedByValue(names) : null) ?? sortByCodePoint(names);
}

/** Checks a list of classes that the user fixed. `location` is the file it came from, if any. */
export function checkClasses(names: readonly string[], location?: string): readonly string[] {
  const seen = new Map<string, number>();
  for (const [number, name] of names.entries()) {
    const first = seen.get(name);
    const where = location === undefined ? 'The list of classes' : `${location}:${number + 1}`;
    if (name === '') throw new LabelsError({ path: location, line: number + 1 }, `${where} has an empty name.`);
    if (first !== undefined) {
      throw new LabelsError(
        { path: location, line: number + 1 },
        `${where} names the class "${name}" again; it is class ${first} already.`,
      );
    }
    seen.set(name, number);
  }
  return names;
}
