import { OptionError } from '@shardtool/format';

/** The number of a class that is given by name, or by number. Throws {@link OptionError} where there is no such class. */
export function classNumber(wanted: string | number, classNames: readonly string[]): number {
  const named = typeof wanted === 'string' ? classNames.indexOf(wanted) : -1;
  if (named >= 0) return named;
  const number = typeof wanted === 'number' ? wanted : /^\d+$/.test(wanted) ? Number(wanted) : -1;
  const isKnown =
    Number.isSafeInteger(number) && number >= 0 && (classNames.length === 0 || number < classNames.length);
  if (isKnown) return number;
  throw new OptionError({}, `There is no class ${JSON.stringify(wanted)}: ${classList(classNames)}.`);
}

function classList(names: readonly string[]): string {
  if (names.length === 0) return 'this dataset does not name its classes, so give numbers from 0 on';
  const shown = names.slice(0, 20).join(', ');
  return `the classes are ${shown}${names.length > 20 ? ` and ${names.length - 20} more` : ''}`;
}
