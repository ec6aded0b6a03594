import { OptionError } from '@shardtool/base';

/** A class: a string is its name, a number its class number, even if a name looks like a number. */
export type ClassChoice = string | number;

/** The number of a class. Throws {@link OptionError} if there is no such class. */
export function classNumber(wanted: ClassChoice, classNames: readonly string[]): number {
  const number = typeof wanted === 'string' ? classNames.indexOf(wanted) : wanted;
  const isKnown =
    Number.isSafeInteger(number) && number >= 0 && (classNames.length === 0 || number < classNames.length);
  if (isKnown) return number;
  throw noSuchClass(wanted, classNames);
}

function noSuchClass(wanted: ClassChoice, classNames: readonly string[]): OptionError {
  const hint =
    typeof wanted === 'string' && isNumberOfClass(wanted, classNames)
      ? ` (text is a name; for the class number, write the number ${wanted}, and for its weight use a Map or ` +
        `a list of pairs, [[${wanted}, weight]])`
      : '';
  return new OptionError({}, `There is no class ${JSON.stringify(wanted)}${hint}: ${classList(classNames)}.`);
}

/** Whether the text, converted to a number, is a class number. */
export function isNumberOfClass(text: string, classNames: readonly string[]): boolean {
  return /^(0|[1-9]\d{0,8})$/.test(text) && (classNames.length === 0 || Number(text) < classNames.length);
}

function classList(names: readonly string[]): string {
  if (names.length === 0) return 'this dataset does not name its classes, so give numbers from 0 on';
  const shown = names.slice(0, 20).join(', ');
  return `the classes are ${shown}${names.length > 20 ? ` and ${names.length - 20} more` : ''}`;
}
